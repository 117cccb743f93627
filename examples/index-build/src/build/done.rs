//! A batch that is a segment by now, and how it becomes one.
use crate::accounting::Mode;
use crate::build::batch::Building;
use crate::build::field::Field;
use crate::build::into_segment::{IntoSegment, expected_bytes};
use crate::build::publish::Written;
use crate::error::Result;
use crate::manifest::{FileEntry, SegmentEntry};
use std::sync::atomic::Ordering;

/// A batch that is a segment by now.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) number: u32,
    pub(super) documents: u32,
    pub(super) skipped: u64,
    pub(super) tokens: u64,
    pub(super) postings: u64,
    pub(super) files: Vec<FileEntry>,
    pub(super) written: Vec<Written>,
}

impl Done {
    /// What it takes until the index is published.
    pub(super) fn allocated_bytes(&self) -> usize {
        let files = self.files.iter().map(|file| size_of::<FileEntry>() + file.name.capacity()).sum::<usize>();
        let written = self.written.iter().map(|file| size_of::<Written>() + file.name.capacity()).sum::<usize>();
        let lists = (self.files.capacity() - self.files.len()) * size_of::<FileEntry>()
            + (self.written.capacity() - self.written.len()) * size_of::<Written>();
        // itself in a tree, then in a list
        2 * size_of::<Done>() + files + written + lists
    }

    /// Its entry in the manifest.
    pub(super) fn entry(&mut self, document_base: u64) -> SegmentEntry {
        let files = std::mem::take(&mut self.files);
        SegmentEntry { number: self.number, document_base, documents: self.documents, files }
    }
}

impl<M: Mode> Building<'_, '_, M> {
    /// Fields in byte order of their names, which is the order of a segment.
    fn sort_fields(&mut self) {
        let mut fields: Vec<(String, Field<M>)> =
            std::mem::take(&mut self.names).into_iter().zip(self.fields.drain(..)).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        (self.names, self.fields) = fields.into_iter().unzip();
    }

    /// Writes the segment, field by field in byte order of their names.
    pub(super) fn segment(&mut self) -> Result<Done> {
        let (shared, number) = (self.shared, self.batch.number);
        self.sort_fields();
        let expected = expected_bytes(shared, self.fields.iter().map(Field::written_bytes).sum());
        if M::HARD {
            self.room_for_segment(expected)?;
        }
        let turn = self.turn.as_mut();
        let mut into = IntoSegment::create(shared, number, expected, &mut self.account, turn)?;
        let (mut tokens, mut postings) = (0, 0);
        let (mut rest, mut names) = (self.fields.as_mut_slice(), self.names.iter());
        while let (false, Some(name)) = (rest.is_empty(), names.next()) {
            let limits = if M::HARD { into.room_for_merge(name, rest)? } else { shared.plan.limits };
            let Some((field, behind)) = rest.split_first_mut() else { break };
            // the fields that wait for their turn go on answering
            let mut poll = || {
                shared.go_on(number)?;
                shared.turns.moved();
                behind.iter_mut().try_for_each(|field| field.answer(shared))
            };
            poll()?;
            into.segment.begin_field(name)?;
            let stats = field.merge(shared, limits, &mut into, &mut poll)?;
            tokens += stats.tokens;
            postings += stats.postings;
            rest = behind;
        }
        let files = into.finish(self.documents)?;
        let mut done = Done {
            number,
            documents: self.documents,
            skipped: self.skipped,
            tokens,
            postings,
            files: Vec::with_capacity(files.len()),
            written: Vec::with_capacity(files.len()),
        };
        for file in files {
            done.files.push(FileEntry::from(&file));
            // Relaxed: about how many are open
            let keep = shared.counts.open_files.fetch_add(1, Ordering::Relaxed) < shared.plan.open_files;
            done.written.push(Written { name: file.name, file: keep.then_some(file.file) });
        }
        Ok(done)
    }
}
