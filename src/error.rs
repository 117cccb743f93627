//! What can be refused: a configuration, a second installation, a reservation. One type for each, none allocates.
use crate::units::Bytes;
use std::fmt;

/// Which limit refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The writer's own cap: raise [`LimiterBuilder::writer_cap_bytes`](crate::LimiterBuilder::writer_cap_bytes), or spill.
    WriterCap,
    /// The arena's address space ends: spill. See [`ArenaHandle::max_bytes`](crate::ArenaHandle::max_bytes).
    ArenaAddressSpace,
    /// The hard limit of the whole process: raise
    /// [`LimiterBuilder::hard_limit_bytes`](crate::LimiterBuilder::hard_limit_bytes), or spill.
    HardLimit,
    /// The hard limit less the room that spillable writers cannot use: lower
    /// [`LimiterBuilder::reserve_bytes`](crate::LimiterBuilder::reserve_bytes), or spill.
    Reserve,
    /// The workspace's own budget: raise its bytes, or spill.
    Workspace,
    /// The amount itself is beyond what a counter can hold (half of `usize`).
    Overflow,
}

/// A `try_` call was refused, and nothing has changed.
///
/// Small and `Copy`: a refusal neither allocates nor formats. The text is made when somebody prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReserveError {
    /// What was asked for, in bytes.
    pub asked_bytes: usize,
    /// What was held at that moment of what the limit bounds (the writer, the arena, the workspace, the whole process), in
    /// bytes.
    pub held_bytes: usize,
    /// The limit that refused, in bytes.
    pub limit_bytes: usize,
    /// Which limit that is.
    pub kind: Refusal,
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, held, limit) = (Bytes(self.asked_bytes), Bytes(self.held_bytes), Bytes(self.limit_bytes));
        match self.kind {
            Refusal::WriterCap => write!(f, "{asked} more refused by writer_cap_bytes: {held} held of {limit}"),
            Refusal::ArenaAddressSpace => {
                write!(f, "{asked} more refused by arena_with_address_space: {held} used of {limit}")
            }
            Refusal::HardLimit => write!(f, "{asked} more refused by hard_limit_bytes: {held} held of {limit} in all"),
            Refusal::Reserve => write!(
                f,
                "{asked} more refused by reserve_bytes: {held} held in all, {limit} is what writers that can spill may use"
            ),
            Refusal::Workspace => write!(f, "{asked} more refused by the workspace: {held} used of {limit}"),
            Refusal::Overflow => write!(f, "{asked} more refused: beyond what a counter can hold, {held} held"),
        }
    }
}

impl std::error::Error for ReserveError {}

/// A configuration that cannot work. The text names the option to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The budget is 0; for no budget at all say `unlimited()`.
    ZeroBudget,
    /// A block of 0 bytes.
    ZeroBlock,
    /// A writer cap of 0 bytes.
    ZeroWriterCap,
    /// A hard limit of 0 bytes.
    ZeroHardLimit,
    /// The budget is above the hard limit, so nobody would be asked to spill before others are refused.
    BudgetAboveHardLimit {
        /// The budget, in bytes.
        budget_bytes: usize,
        /// The hard limit, in bytes.
        hard_limit_bytes: usize,
    },
    /// The reserve leaves writers with an arena nothing.
    ReserveAboveBudget {
        /// The reserve, in bytes.
        reserve_bytes: usize,
        /// The budget, in bytes; the hard limit if there is none.
        budget_bytes: usize,
    },
    /// The floor is above the budget, so no arena could ever be asked to spill.
    FloorAboveBudget {
        /// The floor, in bytes.
        floor_bytes: usize,
        /// The budget, in bytes.
        budget_bytes: usize,
    },
    /// The budget does not hold one block for each of the writers that were announced.
    BudgetBelowMinimum {
        /// The budget, in bytes.
        budget_bytes: usize,
        /// The least that works: writers x block, in bytes.
        minimum_bytes: usize,
        /// The writers that were announced.
        writers: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ConfigError::ZeroBudget => f.write_str("budget_bytes is 0: give a budget, or say unlimited()"),
            ConfigError::ZeroBlock => f.write_str("block_bytes is 0: give the size of an arena's block"),
            ConfigError::ZeroWriterCap => f.write_str("writer_cap_bytes is 0: give a cap, or leave it out"),
            ConfigError::ZeroHardLimit => f.write_str("hard_limit_bytes is 0: give a limit, or leave it out"),
            ConfigError::BudgetAboveHardLimit { budget_bytes, hard_limit_bytes } => write!(
                f,
                "budget_bytes {} is above hard_limit_bytes {}: nobody would be asked to spill before others are refused",
                Bytes(budget_bytes),
                Bytes(hard_limit_bytes)
            ),
            ConfigError::ReserveAboveBudget { reserve_bytes, budget_bytes } => write!(
                f,
                "reserve_bytes {} leaves nothing of the budget {} for writers that can spill",
                Bytes(reserve_bytes),
                Bytes(budget_bytes)
            ),
            ConfigError::FloorAboveBudget { floor_bytes, budget_bytes } => write!(
                f,
                "floor_bytes {} is above budget_bytes {}: no arena could ever be asked to spill",
                Bytes(floor_bytes),
                Bytes(budget_bytes)
            ),
            ConfigError::BudgetBelowMinimum { budget_bytes, minimum_bytes, writers } => write!(
                f,
                "budget_bytes {} is below the minimum {}: one block for each of {writers} writers",
                Bytes(budget_bytes),
                Bytes(minimum_bytes)
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The process-wide limiter was not installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallError {
    /// It had been installed before; its settings stay as they are.
    AlreadyInstalled,
    /// The configuration cannot work; nothing was installed.
    Config(ConfigError),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::AlreadyInstalled => f.write_str("the process-wide limiter is installed already"),
            InstallError::Config(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InstallError {}

impl From<ConfigError> for InstallError {
    fn from(error: ConfigError) -> Self {
        InstallError::Config(error)
    }
}
