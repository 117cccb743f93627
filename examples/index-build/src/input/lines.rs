//! The lines of a part of a file, read in blocks into one buffer that grows only for a line that is longer.
//!
//! The buffer is charged before it grows, and goes back to one block when the long line is done. A part begins at a
//! line's start and ends behind a line end or at the file's end, so no line is in two parts.
use crate::accounting::Account;
use crate::error::{Error, Result};
use crate::input::batch::{Part, changed};
use crate::input::list::{InputFile, Inputs};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// No line is longer: lengths of terms are 32 bits wide, and decoding may make a line three times as long.
pub const MOST_LINE_BYTES: usize = 1 << 30;

/// One line, without its 0x0A.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    pub bytes: &'a [u8],
    /// Offset of its first byte in the file.
    pub offset: u64,
}

/// Reads parts, one after the other.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    block_bytes: usize,
    /// no line is longer
    most_bytes: usize,
    /// the current line's start
    start: usize,
    /// no line end before this
    scanned: usize,
    /// the bytes that were read end here
    end: usize,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// offset of the buffer's `end`
    read: u64,
    part: Part,
    file_bytes: u64,
}

impl Lines {
    /// A reader whose block is charged.
    pub fn new(block_bytes: usize, account: &mut impl Account) -> Lines {
        let block_bytes = block_bytes.max(16);
        account.charge(block_bytes);
        Lines {
            buffer: vec![0; block_bytes],
            block_bytes,
            most_bytes: MOST_LINE_BYTES,
            start: 0,
            scanned: 0,
            end: 0,
            open: None,
        }
    }

    /// The buffer's capacity.
    pub fn allocated_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Frees the buffer and closes the file.
    pub fn release(self, account: &mut impl Account) {
        let bytes = self.buffer.capacity();
        drop(self);
        account.release(bytes);
    }

    /// Goes to a part; the one before has been read to its end.
    pub fn open(&mut self, inputs: &Inputs, part: Part) -> Result<()> {
        let InputFile { path, bytes } = &inputs.files[part.file];
        let mut file = File::open(path).map_err(Error::io("opening", path))?;
        if file.metadata().map_err(Error::io("reading", path))?.len() != *bytes {
            return Err(changed(path));
        }
        if part.start > 0 {
            file.seek(SeekFrom::Start(part.start)).map_err(Error::io("reading", path))?;
        }
        (self.start, self.scanned, self.end) = (0, 0, 0);
        self.open = Some(Open { file, read: part.start, part, file_bytes: *bytes });
        Ok(())
    }

    /// The next line of the part, or none at its end. `block` hears of every block that was read. After [`Error::Room`] it
    /// can be called again.
    #[inline]
    pub fn next<A: Account>(
        &mut self,
        inputs: &Inputs,
        account: &mut A,
        block: &mut impl FnMut(usize) -> Result<()>,
    ) -> Result<Option<Line<'_>>> {
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                let (from, to) = (self.start, self.scanned + found);
                (self.start, self.scanned) = (to + 1, to + 1);
                return Ok(Some(self.line(from, to)));
            }
            self.scanned = self.end;
            if !self.fill(inputs, account, block)? {
                if self.start == self.end {
                    return Ok(None);
                }
                // the last piece of a file that does not end with 0x0A
                let (from, to) = (self.start, self.end);
                self.start = to;
                return Ok(Some(self.line(from, to)));
            }
        }
    }

    /// The file of the line that is being read, the offset of its start, and its length with what follows in the part.
    pub fn place(&self) -> (usize, u64, u64) {
        let Some(open) = &self.open else { return (0, 0, 0) };
        let offset = open.read - (self.end - self.start) as u64;
        (open.part.file, offset, open.part.end - offset)
    }

    #[inline]
    fn line(&self, from: usize, to: usize) -> Line<'_> {
        let behind = (self.end - from) as u64;
        Line { bytes: &self.buffer[from..to], offset: self.open.as_ref().map_or(0, |open| open.read - behind) }
    }

    /// Reads on; false at the part's end.
    fn fill<A: Account>(
        &mut self,
        inputs: &Inputs,
        account: &mut A,
        block: &mut impl FnMut(usize) -> Result<()>,
    ) -> Result<bool> {
        let Some(open) = &mut self.open else { return Ok(false) };
        let path = &inputs.files[open.part.file].path;
        if open.read == open.part.end {
            if open.part.end == open.file_bytes {
                // a file that has grown has more to read
                if read(&mut open.file, path, &mut [0u8; 1])? > 0 {
                    return Err(changed(path));
                }
                open.file_bytes = 0;
            }
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            (self.start, self.scanned) = (0, self.end);
        }
        if self.end == self.buffer.len() {
            if self.end >= self.most_bytes {
                let (offset, most) = (open.read - self.end as u64, self.most_bytes);
                let why = format!("the line is longer than {most} bytes");
                return Err(Error::Input { path: path.clone(), line: line_number(path, offset)?, why });
            }
            let capacity = self.buffer.len().saturating_mul(2);
            let bytes = capacity - self.buffer.len();
            if !account.room(bytes) {
                return Err(Error::Room { bytes });
            }
            account.charge(bytes);
            self.buffer.reserve_exact(capacity - self.buffer.len());
            self.buffer.resize(capacity, 0);
        } else if self.buffer.len() > self.block_bytes && self.end < self.block_bytes {
            let before = self.buffer.capacity();
            self.buffer.truncate(self.block_bytes);
            self.buffer.shrink_to_fit();
            account.release(before - self.buffer.capacity());
        }
        let room = self.buffer.len() - self.end;
        let want = room.min(usize::try_from(open.part.end - open.read).unwrap_or(room));
        let got = read(&mut open.file, path, &mut self.buffer[self.end..self.end + want])?;
        if got == 0 {
            return Err(changed(path));
        }
        self.end += got;
        open.read += got as u64;
        block(got)?;
        Ok(true)
    }
}

/// One read, repeated when a signal interrupts it.
pub(super) fn read(file: &mut File, path: &Path, bytes: &mut [u8]) -> Result<usize> {
    loop {
        match file.read(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read.map_err(Error::io("reading", path)),
        }
    }
}

/// The number of the line at `offset`, from 1: counted only when an error has to be told.
pub fn line_number(path: &Path, offset: u64) -> Result<u64> {
    let mut file = File::open(path).map_err(Error::io("opening", path))?;
    let (mut block, mut left, mut number) = (vec![0u8; 64 << 10], offset, 1u64);
    while left > 0 {
        let want = block.len().min(usize::try_from(left).unwrap_or(block.len()));
        let got = read(&mut file, path, &mut block[..want])?;
        if got == 0 {
            return Err(changed(path));
        }
        number += memchr::memchr_iter(b'\n', &block[..got]).count() as u64;
        left -= got as u64;
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Charge;
    use crate::input::batch::Cutter;
    use crate::options::Format;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Count(usize);
    impl Charge for Count {
        fn charge(&mut self, bytes: usize) {
            self.0 += bytes;
        }
        fn release(&mut self, bytes: usize) {
            self.0 -= bytes;
        }
    }

    impl Account for Count {
        fn term_begins(&mut self) {}
        fn term_ends(&mut self) {}
    }

    /// All lines of all batches, with their offsets.
    fn all(inputs: &Inputs, batch_bytes: u64, block_bytes: usize) -> Result<Vec<(usize, u64, Vec<u8>)>> {
        let (mut cutter, mut count, mut found) = (Cutter::new(inputs, batch_bytes), Count::default(), Vec::new());
        while let Some(batch) = cutter.cut()? {
            let mut lines = Lines::new(block_bytes, &mut count);
            for part in batch.parts(inputs) {
                lines.open(inputs, part)?;
                while let Some(line) = lines.next(inputs, &mut count, &mut |_| Ok(()))? {
                    found.push((part.file, line.offset, line.bytes.to_vec()));
                }
            }
            assert_eq!(count.0, lines.allocated_bytes());
            lines.release(&mut count);
            assert_eq!(count.0, 0);
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_definition_for_every_block_and_batch_size(
            files in proptest::collection::vec(proptest::collection::vec(
                prop_oneof![2 => Just(b'\n'), 5 => Just(b'a'), 1 => Just(b'\r')], 0..120), 1..4),
            batch_bytes in 1u64..90, block_bytes in 16usize..40
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut plain = Vec::new();
            for (number, bytes) in files.iter().enumerate() {
                std::fs::write(folder.path().join(format!("{number}")), bytes).unwrap();
                let mut offset = 0u64;
                for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                    plain.push((number, offset, line.strip_suffix(b"\n").unwrap_or(line).to_vec()));
                    offset += line.len() as u64;
                }
            }
            let inputs = crate::input::list(&[folder.path().to_owned()], Format::Text).unwrap();
            prop_assert_eq!(all(&inputs, batch_bytes, block_bytes).unwrap(), plain);
        }
    }

    #[test]
    fn a_long_line_grows_the_buffer_and_the_next_one_shrinks_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let short = vec!["y".repeat(99); 2000].join("\n");
        std::fs::write(&path, ["x".repeat(1_000_000), short].join("\n")).unwrap();
        let inputs = crate::input::list(std::slice::from_ref(&path), Format::Text).unwrap();
        let (mut count, mut sizes) = (Count::default(), Vec::new());
        let mut lines = Lines::new(4096, &mut count);
        lines.open(&inputs, Part { file: 0, start: 0, end: inputs.bytes }).unwrap();
        while let Some(line) = lines.next(&inputs, &mut count, &mut |_| Ok(())).unwrap() {
            let length = line.bytes.len();
            sizes.push((length, lines.allocated_bytes()));
        }
        assert_eq!(sizes.len(), 2001);
        assert!(sizes[0].0 == 1_000_000 && sizes[0].1 >= 1_000_000 && sizes[2000] == (99, 4096));
        assert_eq!(count.0, lines.allocated_bytes());
        assert_eq!(line_number(&path, 1_000_001).unwrap(), 2);
        assert_eq!(line_number(&path, 0).unwrap(), 1);
    }

    #[test]
    fn a_line_beyond_the_limit_is_an_error_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, ["one".to_owned(), "x".repeat(5000), "three".to_owned()].join("\n")).unwrap();
        let inputs = crate::input::list(std::slice::from_ref(&path), Format::Text).unwrap();
        let mut count = Count::default();
        let mut lines = Lines { most_bytes: 4096, ..Lines::new(1024, &mut count) };
        lines.open(&inputs, Part { file: 0, start: 0, end: inputs.bytes }).unwrap();
        assert!(lines.next(&inputs, &mut count, &mut |_| Ok(())).unwrap().is_some());
        let error = lines.next(&inputs, &mut count, &mut |_| Ok(())).unwrap_err();
        assert!(matches!(error, Error::Input { line: 2, .. }), "{error}");
        assert_eq!(count.0, lines.allocated_bytes());
    }

    #[test]
    fn a_file_that_changed_its_length_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let inputs = crate::input::list(std::slice::from_ref(&path), Format::Text).unwrap();
        for content in ["one\n", "one\ntwo\nthree\n"] {
            std::fs::write(&path, content).unwrap();
            let error = all(&inputs, 100, 64).unwrap_err();
            assert!(error.to_string().contains("length changed"), "{error}");
        }
        // and after it was opened
        for content in ["one\n", "one\ntwo\nthree\n"] {
            std::fs::write(&path, "one\ntwo\n").unwrap();
            let mut lines = Lines::new(64, &mut Count::default());
            lines.open(&inputs, Part { file: 0, start: 0, end: 8 }).unwrap();
            std::fs::write(&path, content).unwrap();
            let mut read = || lines.next(&inputs, &mut Count::default(), &mut |_| Ok(())).map(|line| line.is_some());
            assert!(std::iter::repeat_with(&mut read).take(4).any(|line| line.is_err()), "{content:?}");
        }
    }
}
