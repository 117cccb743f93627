//! The replacement of runs in a piece of the file, in place. Pure: the same bytes, pass and seed give the same bytes, on
//! every machine and in every version, which is why the hash is written out here.
//!
//! A piece may end inside a run, an escape or a character; [`alter`] then says how far it came, and the caller hands the
//! rest in again with what follows it.
use super::SHORTEST;

/// The key of one pass.
#[derive(Debug)]
pub(super) struct Alter {
    key: u64,
}

impl Alter {
    pub(super) fn new(seed: u64, pass: u64) -> Alter {
        Alter { key: mix(seed ^ 0x243f_6a88_85a3_08d3, pass ^ 0x1319_8a2e_0370_7344) }
    }

    /// Where the digits and letters that replace `run` come from.
    fn source(&self, run: &[u8]) -> Source {
        let mut hash = self.key ^ run.len() as u64;
        let mut words = run.chunks_exact(8);
        for word in &mut words {
            // a chunk of 8 is an array of 8
            hash = mix(hash, u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        Source { state: mix(hash, u64::from_le_bytes(last)), word: 0, left: 0 }
    }
}

/// Both halves of the product, folded: one multiplication mixes every bit of both into every bit of the result. The
/// constants keep an operand from being 0.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ (product >> 64) as u64
}

/// A stream of small numbers from one hash.
struct Source {
    state: u64,
    word: u64,
    left: u32,
}

impl Source {
    /// A number below `bound`, which is at most 26: 16 bits a number keep the bias below one in two thousand.
    #[inline]
    fn below(&mut self, bound: u8) -> u8 {
        if self.left == 0 {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            self.word = mix(self.state, self.state.rotate_left(32));
            self.left = 4;
        }
        let number = self.word as u16;
        self.word >>= 16;
        self.left -= 1;
        ((u32::from(number) * u32::from(bound)) >> 16) as u8
    }
}

/// What a byte is, as far as runs go. The order matters: all that can be in a run comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Digit,
    LowerHex,
    Lower,
    UpperHex,
    Upper,
    /// Part of a character of several bytes, or of no character.
    Wide,
    Backslash,
    Other,
}

const CLASS: [Class; 256] = {
    let mut table = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' => Class::Digit,
            b'a'..=b'f' => Class::LowerHex,
            b'g'..=b'z' => Class::Lower,
            b'A'..=b'F' => Class::UpperHex,
            b'G'..=b'Z' => Class::Upper,
            0x80.. => Class::Wide,
            b'\\' => Class::Backslash,
            _ => Class::Other,
        };
        byte += 1;
    }
    table
};

const fn bit(class: Class) -> u32 {
    1 << class as u32
}

/// Replaces the runs of `bytes` and returns how many bytes of it are done; the rest, which is not touched, is the
/// beginning of something whose end `bytes` does not hold. With `last` nothing follows, and all is done.
///
/// Whether a character beyond ASCII is alphanumeric is slow to find out, so runs are cut in two steps: first at ASCII
/// alone, and further only where a digit makes it matter.
pub(super) fn alter(bytes: &mut [u8], keyed: &Alter, last: bool) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        match CLASS[bytes[at] as usize] {
            Class::Other => at += 1,
            Class::Backslash => match escape(&bytes[at..], last) {
                Some(length) => at += length,
                None => return at,
            },
            _ => {
                let (length, classes) = stretch(&bytes[at..]);
                let end = at + length;
                if end == bytes.len() && !last {
                    return at;
                }
                if classes & bit(Class::Digit) != 0 {
                    if classes & bit(Class::Wide) != 0 {
                        alter_wide(&mut bytes[at..end], keyed);
                    } else if length >= SHORTEST {
                        replace(&mut bytes[at..end], classes, keyed);
                    }
                }
                at = end;
            }
        }
    }
    at
}

/// The bytes up to the first one that is ASCII and in no run, and a bit for each [`Class`] among them.
#[inline]
fn stretch(bytes: &[u8]) -> (usize, u32) {
    let mut classes = 0;
    for (length, &byte) in bytes.iter().enumerate() {
        let class = CLASS[byte as usize];
        if class > Class::Wide {
            return (length, classes);
        }
        classes |= bit(class);
    }
    (bytes.len(), classes)
}

/// Replaces the runs of a stretch that holds bytes beyond ASCII.
fn alter_wide(bytes: &mut [u8], keyed: &Alter) {
    let (mut start, mut characters, mut classes) = (0, 0, 0);
    let mut at = 0;
    while at <= bytes.len() {
        let length = match bytes.get(at) {
            None => 0,
            Some(byte) if byte.is_ascii() => 1,
            Some(_) => wide(&bytes[at..]),
        };
        if length > 0 {
            classes |= bit(CLASS[bytes[at] as usize]);
            characters += 1;
            at += length;
            continue;
        }
        if characters >= SHORTEST && classes & bit(Class::Digit) != 0 {
            replace(&mut bytes[start..at], classes, keyed);
        }
        // one byte of what is in no run; any others of the same character are in none either
        at += 1;
        (start, characters, classes) = (at, 0, 0);
    }
}

/// The bytes of the alphanumeric character at the beginning of `bytes`, which is not ASCII; 0 for any other character and
/// for bytes that are no character.
fn wide(bytes: &[u8]) -> usize {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return 0,
    };
    let text = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text.and_then(|text| text.chars().next()) {
        Some(character) if character.is_alphanumeric() => length,
        _ => 0,
    }
}

/// The bytes of the escape at the beginning of `bytes`, a backslash; 1 if it escapes nothing.
fn escape(bytes: &[u8], last: bool) -> Option<usize> {
    match bytes.get(1) {
        None => last.then_some(1),
        Some(b'u') => {
            let digits = bytes[2..].iter().take(4).take_while(|b| b.is_ascii_hexdigit()).count();
            match digits {
                4 => Some(6),
                _ if bytes.len() == 2 + digits && !last => None,
                _ => Some(1),
            }
        }
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(2),
        Some(_) => Some(1),
    }
}

/// Replaces a run character by character.
fn replace(run: &mut [u8], classes: u32, keyed: &Alter) {
    const HEX_LOWER: u32 = bit(Class::Digit) | bit(Class::LowerHex);
    const HEX_UPPER: u32 = bit(Class::Digit) | bit(Class::UpperHex);
    let letters = if classes & !HEX_LOWER == 0 || classes & !HEX_UPPER == 0 { 6 } else { 26 };
    let mut source = keyed.source(run);
    for byte in run {
        match CLASS[*byte as usize] {
            Class::Digit => *byte = b'0' + source.below(10),
            Class::LowerHex | Class::Lower => *byte = b'a' + source.below(letters),
            Class::UpperHex | Class::Upper => *byte = b'A' + source.below(letters),
            _ => {}
        }
    }
}
