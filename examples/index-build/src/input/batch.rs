//! Where batches end. A batch ends with the document that reaches `batch_bytes` raw bytes counted from the batch's start,
//! across files; the end of a file ends its document. So the boundaries depend on the input alone, and the end of a batch
//! is found by one look into the file where its last byte is: batches are handed out without reading the input through.
use crate::error::{Error, Result};
use crate::input::list::Inputs;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// A part of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Index into the list of files.
    pub file: usize,
    pub start: u64,
    pub end: u64,
}

/// Consecutive bytes of the input; files in between are in it whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub number: u32,
    first: usize,
    start: u64,
    last: usize,
    end: u64,
    pub bytes: u64,
}

impl Batch {
    /// The parts of files, in order; none is empty.
    pub fn parts<'a>(&self, inputs: &'a Inputs) -> impl Iterator<Item = Part> + use<'a> {
        let batch = *self;
        (batch.first..=batch.last).filter_map(move |file| {
            let start = if file == batch.first { batch.start } else { 0 };
            let end = if file == batch.last { batch.end } else { inputs.files[file].bytes };
            (start < end).then_some(Part { file, start, end })
        })
    }
}

/// Bytes that are looked at for a line's end at a time.
const LOOK_BYTES: usize = 4 << 10;

/// Cuts the input, batch by batch.
#[derive(Debug)]
pub struct Cutter<'a> {
    inputs: &'a Inputs,
    batch_bytes: u64,
    file: usize,
    at: u64,
    next: u32,
}

impl<'a> Cutter<'a> {
    /// Starts at the first file. `batch_bytes` is at least 1.
    pub fn new(inputs: &'a Inputs, batch_bytes: u64) -> Cutter<'a> {
        Cutter { inputs, batch_bytes: batch_bytes.max(1), file: 0, at: 0, next: 0 }
    }

    /// The next batch, or none when the input is used up.
    pub fn cut(&mut self) -> Result<Option<Batch>> {
        let files = &self.inputs.files;
        while files.get(self.file).is_some_and(|file| self.at >= file.bytes) {
            self.file += 1;
            self.at = 0;
        }
        if self.file >= files.len() {
            return Ok(None);
        }
        let (first, start) = (self.file, self.at);
        let mut before = 0u64;
        // the byte that reaches the size is `ahead` bytes further on
        let mut ahead = self.batch_bytes - 1;
        loop {
            let file = &files[self.file];
            let left = file.bytes - self.at;
            if ahead < left {
                let end = line_end(&file.path, self.at + ahead, file.bytes)?;
                before += end - self.at;
                self.at = end;
                break;
            }
            ahead -= left;
            before += left;
            self.at = file.bytes;
            if self.file + 1 == files.len() {
                break;
            }
            self.file += 1;
            self.at = 0;
        }
        let number = self.next;
        self.next = number
            .checked_add(1)
            .ok_or_else(|| Error::Failed("more than 2^32 batches: choose a larger --batch-bytes".to_owned()))?;
        Ok(Some(Batch { number, first, start, last: self.file, end: self.at, bytes: before }))
    }
}

/// The offset behind the first line end at or after `from`, or the file's length.
pub fn line_end(path: &Path, from: u64, bytes: u64) -> Result<u64> {
    let mut file = File::open(path).map_err(Error::io("opening", path))?;
    file.seek(SeekFrom::Start(from)).map_err(Error::io("reading", path))?;
    let (mut block, mut at) = ([0u8; LOOK_BYTES], from);
    while at < bytes {
        let want = LOOK_BYTES.min(usize::try_from(bytes - at).unwrap_or(LOOK_BYTES));
        let read = match file.read(&mut block[..want]) {
            Ok(0) => return Err(changed(path)),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("reading", path)(error)),
        };
        if let Some(found) = memchr::memchr(b'\n', &block[..read]) {
            return Ok(at + found as u64 + 1);
        }
        at += read as u64;
    }
    Ok(bytes)
}

/// The error of a file that is no longer what it was when it was listed.
pub fn changed(path: &Path) -> Error {
    Error::Failed(format!("{}: its length changed while it was read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Format;
    use proptest::prelude::*;

    /// The definition: documents are taken until their raw bytes reach the size.
    fn plainly(files: &[Vec<u8>], batch_bytes: u64) -> Vec<Vec<(usize, u64, u64)>> {
        let (mut batches, mut batch, mut size) = (Vec::new(), Vec::<(usize, u64, u64)>::new(), 0u64);
        for (number, file) in files.iter().enumerate() {
            let mut at = 0u64;
            for line in file.split_inclusive(|&byte| byte == b'\n') {
                let end = at + line.len() as u64;
                match batch.last_mut() {
                    Some(part) if part.0 == number => part.2 = end,
                    _ => batch.push((number, at, end)),
                }
                at = end;
                size += line.len() as u64;
                if size >= batch_bytes {
                    batches.push(std::mem::take(&mut batch));
                    size = 0;
                }
            }
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
        batches
    }

    proptest! {
        #[test]
        fn batches_end_with_the_document_that_reaches_the_size(
            files in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a')], 0..40), 0..6),
            batch_bytes in 1u64..30
        ) {
            let folder = tempfile::tempdir().unwrap();
            for (number, bytes) in files.iter().enumerate() {
                std::fs::write(folder.path().join(format!("{number}")), bytes).unwrap();
            }
            let inputs = crate::input::list(&[folder.path().to_owned()], Format::Text).unwrap();
            let (mut cutter, mut batches) = (Cutter::new(&inputs, batch_bytes), Vec::new());
            let mut sum = 0;
            while let Some(batch) = cutter.cut().unwrap() {
                prop_assert_eq!(batch.number as usize, batches.len());
                sum += batch.bytes;
                batches.push(batch.parts(&inputs).map(|part| (part.file, part.start, part.end)).collect::<Vec<_>>());
            }
            prop_assert_eq!(batches, plainly(&files, batch_bytes));
            prop_assert_eq!(sum, inputs.bytes);
        }
    }
}
