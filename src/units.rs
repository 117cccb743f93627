//! Sizes: powers of two, and how a size is written for people. Amounts of memory are `usize` bytes everywhere.
use std::fmt;

/// 1,024 bytes.
pub const KIB: usize = 1 << 10;
/// 1,048,576 bytes.
pub const MIB: usize = 1 << 20;
/// 1,073,741,824 bytes.
pub const GIB: usize = 1 << 30;

/// Writes a number of bytes in the largest unit that it fills: `64 MiB`, `1.5 KiB`, `17 B`.
///
/// At most one decimal, cut and not rounded, so that a value below a limit never reads like the limit.
///
/// ```
/// use plimsoll::{Bytes, MIB};
/// assert_eq!(Bytes(64 * MIB).to_string(), "64 MiB");
/// assert_eq!(Bytes(1_600).to_string(), "1.5 KiB");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as u64;
        let (unit, name) = match bytes {
            0..0x400 => return f.pad(&format!("{bytes} B")),
            0x400..0x10_0000 => (0x400, "KiB"),
            0x10_0000..0x4000_0000 => (0x10_0000, "MiB"),
            0x4000_0000..0x100_0000_0000 => (0x4000_0000, "GiB"),
            _ => (0x100_0000_0000, "TiB"),
        };
        let (whole, tenth) = (bytes / unit, (bytes % unit) * 10 / unit);
        if tenth == 0 { f.pad(&format!("{whole} {name}")) } else { f.pad(&format!("{whole}.{tenth} {name}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_cut_and_never_rounded_up_to_the_next_unit() {
        let text = |n: usize| Bytes(n).to_string();
        assert_eq!(text(0), "0 B");
        assert_eq!(text(1_023), "1023 B");
        assert_eq!(text(KIB), "1 KiB");
        assert_eq!(text(MIB - 1), "1023.9 KiB");
        assert_eq!(text(3 * MIB + MIB / 2), "3.5 MiB");
        assert_eq!(text(GIB), "1 GiB");
        assert_eq!(text(1 << 40), "1 TiB");
        assert_eq!(text(usize::MAX), "16777215.9 TiB");
        assert_eq!(format!("{:>8}", Bytes(5)), "     5 B");
    }
}
