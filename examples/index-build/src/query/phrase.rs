//! Words at consecutive positions of one document. Up to [`ABREAST`] words are followed at once, each by a reader of its
//! own, and nothing is kept; a longer phrase keeps the few places where its beginning matches and goes through the other
//! words one by one, so that any number of words needs no more readers than that.
use crate::error::Result;
use crate::segment::{Postings, Segment, TermInfo};

/// Readers at once; each may take two pages of 64 KiB.
const ABREAST: usize = 16;

/// Calls `found` with document and first position of each match, in order.
pub(super) fn matches(segment: &Segment, words: &[TermInfo], mut found: impl FnMut(u32, u32)) -> Result<()> {
    if words.len() <= ABREAST {
        return follow(segment, words, found);
    }
    let mut places = Vec::new();
    follow(segment, &words[..ABREAST], |doc, position| places.push((doc, position)))?;
    for (distance, word) in words.iter().enumerate().skip(ABREAST) {
        if places.is_empty() {
            return Ok(());
        }
        keep_followed(segment, &mut places, word, distance as u64)?;
    }
    for (doc, position) in places {
        found(doc, position);
    }
    Ok(())
}

fn follow(segment: &Segment, words: &[TermInfo], mut found: impl FnMut(u32, u32)) -> Result<()> {
    let mut readers = Vec::with_capacity(words.len());
    for word in words {
        let mut reader = segment.postings();
        reader.start(word)?;
        readers.push(Reader { postings: reader, doc: None, position: None });
    }
    let Some((first, others)) = readers.split_first_mut() else { return Ok(()) };
    'documents: while let Some((mut doc, _)) = first.postings.next_document()? {
        // go on until all readers stand on one document
        loop {
            let mut target = doc;
            for reader in others.iter_mut() {
                match reader.go_to_document(target)? {
                    Some(at) => target = at,
                    None => return Ok(()),
                }
            }
            if target == doc {
                break;
            }
            while doc < target {
                let Some((next, _)) = first.postings.next_document()? else { return Ok(()) };
                doc = next;
            }
        }
        'positions: while let Some(position) = first.postings.next_position()? {
            for (distance, reader) in (1..).zip(others.iter_mut()) {
                let wanted = u64::from(position) + distance;
                match reader.go_to_position(wanted)? {
                    None => continue 'documents,
                    Some(at) if u64::from(at) != wanted => continue 'positions,
                    Some(_) => {}
                }
            }
            found(doc, position);
        }
    }
    Ok(())
}

/// Keeps the places that have the word at this distance.
fn keep_followed(segment: &Segment, places: &mut Vec<(u32, u32)>, word: &TermInfo, distance: u64) -> Result<()> {
    let mut postings = segment.postings();
    postings.start(word)?;
    let mut reader = Reader { postings, doc: None, position: None };
    let mut kept = 0;
    for at in 0..places.len() {
        let (doc, position) = places[at];
        match reader.go_to_document(doc)? {
            None => break,
            Some(found) if found != doc => continue,
            Some(_) => {}
        }
        let wanted = u64::from(position) + distance;
        if reader.go_to_position(wanted)?.is_some_and(|found| u64::from(found) == wanted) {
            places[kept] = (doc, position);
            kept += 1;
        }
    }
    places.truncate(kept);
    Ok(())
}

/// A reader that stays where it was found; it only goes forward.
struct Reader<'a> {
    postings: Postings<'a>,
    doc: Option<u32>,
    position: Option<u32>,
}

impl Reader<'_> {
    /// The first document that is not before `doc`; `None` behind the last.
    fn go_to_document(&mut self, doc: u32) -> Result<Option<u32>> {
        while self.doc.is_none_or(|at| at < doc) {
            let Some((next, _)) = self.postings.next_document()? else { return Ok(None) };
            self.doc = Some(next);
            self.position = None;
        }
        Ok(self.doc)
    }

    /// The first position of the document that is not before `position`; `None` behind the last.
    fn go_to_position(&mut self, position: u64) -> Result<Option<u32>> {
        while self.position.is_none_or(|at| u64::from(at) < position) {
            let Some(next) = self.postings.next_position()? else { return Ok(None) };
            self.position = Some(next);
        }
        Ok(self.position)
    }
}
