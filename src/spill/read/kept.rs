//! A handle that is opened once and kept until its reader goes.

use crate::spill::SpillResult;
use crate::spill::files::OpenFile;
use crate::sync::Mutex;
use std::sync::OnceLock;

/// Reading it takes no lock and no locked instruction.
#[derive(Debug)]
pub(super) struct Kept {
    file: OnceLock<Box<dyn OpenFile>>,
    /// Held while the file is opened, so that it is opened once however many threads ask at first.
    opening: Mutex<()>,
}

impl Kept {
    pub(super) fn new() -> Kept {
        Kept { file: OnceLock::new(), opening: Mutex::new(()) }
    }

    /// Reads the open file.
    #[inline]
    pub(super) fn with<T>(
        &self,
        open: impl FnOnce() -> SpillResult<Box<dyn OpenFile>>,
        read: impl FnOnce(&dyn OpenFile) -> SpillResult<T>,
    ) -> SpillResult<T> {
        match self.file.get() {
            Some(file) => read(&**file),
            None => read(self.open(open)?),
        }
    }

    /// A failure is not kept: the next read tries again.
    #[cold]
    fn open(&self, open: impl FnOnce() -> SpillResult<Box<dyn OpenFile>>) -> SpillResult<&dyn OpenFile> {
        let _one_at_a_time = self.opening.lock();
        if let Some(file) = self.file.get() {
            return Ok(&**file);
        }
        let file = open()?;
        Ok(&**self.file.get_or_init(|| file))
    }
}
