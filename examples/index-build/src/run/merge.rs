//! The k-way merge: terms in ascending order, and for each term the postings of its sources in the sources' order.
//!
//! The sources of a writer were filled one after the other, so their spans of a term follow each other too. A binary
//! heap of source numbers, ordered by key, term and number, finds the next term; with one source there is no heap.
use crate::accounting::Account;
use crate::error::Result;
use crate::run::source::Source;
use std::cmp::Ordering;

/// Where merged terms go: a run, or a segment.
pub trait Target<A: Account> {
    /// The next term.
    fn begin_term(&mut self, term: &[u8], account: &mut A) -> Result<()>;
    /// Bytes of its postings; the last ones of a span are marked.
    fn piece(&mut self, bytes: &[u8], last: bool, account: &mut A) -> Result<()>;
    /// No more postings.
    fn end_term(&mut self, account: &mut A) -> Result<()>;
}

/// Terms between two looks at what the build is asked to do.
const POLL_TERMS: u32 = 1024;

/// Merges all sources into the target; `poll` is asked now and then whether to go on.
pub fn merge<A: Account>(
    sources: &mut [Source<'_>],
    target: &mut impl Target<A>,
    account: &mut A,
    poll: &mut impl FnMut() -> Result<()>,
) -> Result<()> {
    let mut terms = 0u32;
    let mut tick = |poll: &mut dyn FnMut() -> Result<()>| {
        terms += 1;
        if terms.is_multiple_of(POLL_TERMS) { poll() } else { Ok(()) }
    };
    if let [source] = sources {
        while source.advance(account)? {
            tick(poll)?;
            source.settle();
            target.begin_term(source.term(), account)?;
            source.drain(target, account)?;
            target.end_term(account)?;
        }
        return Ok(());
    }
    let list_bytes = 2 * sources.len() * size_of::<u32>();
    account.charge(list_bytes);
    let mut heap = Vec::with_capacity(sources.len());
    let mut equal: Vec<u32> = Vec::with_capacity(sources.len());
    let merged = (|| {
        for (number, source) in sources.iter_mut().enumerate() {
            if source.advance(account)? {
                source.settle();
                heap.push(number as u32);
            }
        }
        heap.sort_by(|&a, &b| compare(sources, a, b));
        while let Some(&first) = heap.first() {
            tick(poll)?;
            target.begin_term(sources[first as usize].term(), account)?;
            equal.clear();
            while let Some(&next) = heap.first() {
                let (a, b) = (&sources[first as usize], &sources[next as usize]);
                if next != first && (a.key() != b.key() || a.term() != b.term()) {
                    break;
                }
                equal.push(next);
                pop(&mut heap, sources);
            }
            for &number in &equal {
                sources[number as usize].drain(target, account)?;
            }
            target.end_term(account)?;
            for &number in &equal {
                let source = &mut sources[number as usize];
                if source.advance(account)? {
                    source.settle();
                    push(&mut heap, number, sources);
                }
            }
        }
        Ok(())
    })();
    drop((heap, equal));
    account.release(list_bytes);
    merged
}

#[inline]
fn compare(sources: &[Source<'_>], a: u32, b: u32) -> Ordering {
    let (left, right) = (&sources[a as usize], &sources[b as usize]);
    left.key().cmp(&right.key()).then_with(|| left.term().cmp(right.term())).then_with(|| a.cmp(&b))
}

fn push(heap: &mut Vec<u32>, number: u32, sources: &[Source<'_>]) {
    heap.push(number);
    let mut at = heap.len() - 1;
    while at > 0 {
        let parent = (at - 1) / 2;
        if compare(sources, heap[parent], heap[at]).is_le() {
            break;
        }
        heap.swap(parent, at);
        at = parent;
    }
}

fn pop(heap: &mut Vec<u32>, sources: &[Source<'_>]) {
    heap.swap_remove(0);
    let mut at = 0;
    loop {
        let mut least = at;
        for child in [2 * at + 1, 2 * at + 2] {
            if child < heap.len() && compare(sources, heap[child], heap[least]).is_lt() {
                least = child;
            }
        }
        if least == at {
            return;
        }
        heap.swap(at, least);
        at = least;
    }
}
