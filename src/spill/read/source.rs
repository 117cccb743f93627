//! A way to some content.

use crate::spill::{SpillError, SpillResult};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// What a check found wrong with bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flaw {
    /// Where, in bytes from the start of what was read.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

/// How much [`Source::append_at`] adds to a vector before it has seen that there is so much, in bytes.
const STEP: usize = 1 << 20;

/// A way to some content: a file, a copy of it elsewhere, something that is put together from other files. Any number of
/// threads read it at the same time.
pub trait Source: Debug + Send + Sync {
    /// Fills `bytes` from `offset` on. May block. What `bytes` held before says nothing.
    ///
    /// # Errors
    /// [`SpillError::End`] if the content ends before; else what is wrong. `bytes` may hold anything then.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()>;

    /// What errors call it: the path of a file, or a name.
    fn name(&self) -> &Path;

    /// Fills `bytes` from `offset` on with what `check` finds nothing wrong with. A source with several ways to the content
    /// tries the others before it gives up.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at), and [`SpillError::Corrupt`] with what `check` found.
    #[inline]
    fn read_checked_at(
        &self,
        bytes: &mut [u8],
        offset: u64,
        check: &dyn Fn(&[u8]) -> Result<(), Flaw>,
    ) -> SpillResult<()> {
        self.read_exact_at(bytes, offset)?;
        check(bytes).map_err(|Flaw { at, why }| SpillError::corrupt(self.name(), offset + at as u64, why))
    }

    /// Appends the `bytes` bytes from `offset` on to `out`, which grows by at most 1 MiB, or what a vector grows by itself,
    /// ahead of what was read. The memory is for the owner of `out` to charge.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at); [`SpillError::Io`] of the kind [`OutOfMemory`](std::io::ErrorKind) if the
    /// allocator refuses. `out` is as it was then, but for its capacity.
    fn append_at(&self, out: &mut Vec<u8>, bytes: usize, offset: u64) -> SpillResult<()> {
        let start = out.len();
        let mut done = 0;
        while done < bytes {
            let step = (bytes - done).min(STEP);
            let appended = grow(out, step, self.name()).and_then(|()| {
                let at = offset.checked_add(done as u64).ok_or_else(|| self.end(offset, bytes))?;
                self.read_exact_at(&mut out[start + done..], at)
            });
            if let Err(error) = appended {
                out.truncate(start);
                return Err(match error {
                    // what was asked for is the whole
                    SpillError::End { path, .. } => SpillError::End { path, offset, asked_bytes: bytes },
                    error => error,
                });
            }
            done += step;
        }
        Ok(())
    }

    /// The error of a read of `asked_bytes` from `offset` on across the end.
    fn end(&self, offset: u64, asked_bytes: usize) -> SpillError {
        SpillError::End { path: self.name().to_owned(), offset, asked_bytes }
    }
}

fn grow(out: &mut Vec<u8>, bytes: usize, name: &Path) -> SpillResult<()> {
    let refused = |_| SpillError::io_of("reading", name, bytes as u64)(std::io::ErrorKind::OutOfMemory.into());
    out.try_reserve(bytes).map_err(refused)?;
    out.resize(out.len() + bytes, 0);
    Ok(())
}

macro_rules! through {
    ($($pointer:ty),+) => {$(
        impl<S: Source + ?Sized> Source for $pointer {
            #[inline]
            fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> SpillResult<()> {
                (**self).read_exact_at(bytes, offset)
            }
            fn name(&self) -> &Path {
                (**self).name()
            }
            #[inline]
            fn read_checked_at(
                &self,
                bytes: &mut [u8],
                offset: u64,
                check: &dyn Fn(&[u8]) -> Result<(), Flaw>,
            ) -> SpillResult<()> {
                (**self).read_checked_at(bytes, offset, check)
            }
            fn append_at(&self, out: &mut Vec<u8>, bytes: usize, offset: u64) -> SpillResult<()> {
                (**self).append_at(out, bytes, offset)
            }
        }
    )+};
}

through!(&S, Arc<S>, Box<S>);
