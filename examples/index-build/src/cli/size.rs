//! Sizes as the command line reads and writes them. Reading is strict, because a size that is taken for another one
//! shows only in the figures of a build; writing uses powers of two alone.

/// The units that are read: powers of two by their IEC names, powers of ten by their SI names.
const UNITS: [(&str, u64); 6] =
    [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];

/// Why a text is no size; the text itself is named by whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeError {
    /// Not a whole number followed by nothing or by one of the units.
    Form,
    /// More bytes than 64 bits hold, or than this machine can address.
    TooLarge,
    /// 0 where it would mean nothing.
    Zero,
}

impl std::fmt::Display for SizeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SizeError::Form => {
                "a size is a whole number of bytes, or a whole number with KiB, MiB, GiB (powers of two) or kB, MB, GB \
                 (powers of ten) right behind it, as in 64MiB"
            }
            SizeError::TooLarge => "more bytes than this machine can address",
            SizeError::Zero => "0 is not allowed here",
        })
    }
}

impl std::error::Error for SizeError {}

/// Reads `4096`, `512KiB`, `64MiB`, `1GiB`, `10kB`, `10MB`, `1GB`; 0 is allowed.
///
/// # Errors
/// A fraction, a sign, a blank, any other unit or spelling, and a number of bytes above `u64::MAX`.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return Err(SizeError::Form);
    }
    let scale = match unit {
        "" => 1,
        _ => UNITS.iter().find(|(name, _)| *name == unit).ok_or(SizeError::Form)?.1,
    };
    // only digits are left, so the one thing that can go wrong is their number
    let number: u64 = digits.parse().map_err(|_| SizeError::TooLarge)?;
    number.checked_mul(scale).ok_or(SizeError::TooLarge)
}

/// A size of a file or of input, above 0: the value parser of most options.
pub(super) fn above_zero(text: &str) -> Result<u64, SizeError> {
    match parse(text)? {
        0 => Err(SizeError::Zero),
        bytes => Ok(bytes),
    }
}

/// A size of memory, 0 allowed.
pub(super) fn memory(text: &str) -> Result<usize, SizeError> {
    usize::try_from(parse(text)?).map_err(|_| SizeError::TooLarge)
}

/// A size of memory above 0.
pub(super) fn memory_above_zero(text: &str) -> Result<usize, SizeError> {
    usize::try_from(above_zero(text)?).map_err(|_| SizeError::TooLarge)
}

/// `bytes` for a reader: whole bytes below 1 KiB, else one decimal in the largest of KiB, MiB and GiB that it reaches.
///
/// What would round up to 1024.0 of a unit is written in the next one.
pub fn human(bytes: u64) -> String {
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, "KiB");
    for next in ["MiB", "GiB"] {
        if value < 1023.95 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    format!("{value:.1} {unit}")
}

/// A count with a comma after every third digit from the right.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_the_contract_is_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("007", 7),
            ("1KiB", 1 << 10),
            ("512KiB", 512 << 10),
            ("64MiB", 64 << 20),
            ("1GiB", 1 << 30),
            ("0GiB", 0),
            ("10kB", 10_000),
            ("10MB", 10_000_000),
            ("1GB", 1_000_000_000),
            ("18446744073709551615", u64::MAX),
            ("17179869183GiB", ((1u64 << 34) - 1) << 30),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_an_error() {
        for text in [
            "", " ", "1.5GiB", "1,5GiB", "1_000", "+1", "-1", "-1KiB", " 1", "1 ", "1 KiB", "KiB", "1kib", "1KIB",
            "1Kib", "1KB", "1kiB", "1K", "1M", "1m", "1G", "1B", "1b", "1TiB", "1TB", "1mB", "1gb", "1MiBs", "1MiB ",
            "0x10", "1e3", "٣", "１", "inf", "max", "64MiB64", "1\n", "1\0",
        ] {
            assert_eq!(parse(text), Err(SizeError::Form), "{text:?}");
        }
    }

    #[test]
    fn more_than_64_bits_is_an_error_and_never_wraps() {
        for text in
            ["18446744073709551616", "17179869184GiB", "18446744073709551615KiB", "99999999999999999999999999kB"]
        {
            assert_eq!(parse(text), Err(SizeError::TooLarge), "{text}");
        }
    }

    #[test]
    fn zero_is_read_only_where_it_means_something() {
        assert_eq!(memory("0"), Ok(0));
        assert_eq!(memory("0KiB"), Ok(0));
        assert_eq!(memory_above_zero("0"), Err(SizeError::Zero));
        assert_eq!(above_zero("0MiB"), Err(SizeError::Zero));
        assert_eq!(above_zero("1"), Ok(1));
    }

    #[test]
    fn sizes_for_readers_are_powers_of_two() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (1 << 20, "1.0 MiB"),
            (64 << 20, "64.0 MiB"),
            ((1 << 30) - 1, "1.0 GiB"),
            (5 << 40, "5120.0 GiB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn counts_are_grouped_by_three() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567"), (100_000, "100,000")] {
            assert_eq!(grouped(count), text);
        }
    }
}
