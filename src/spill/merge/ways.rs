//! The k-way merge: records in ascending order of their keys, and for each key the pieces of its sources in the sources'
//! order.
//!
//! The sources of a writer were filled one after the other, so their pieces of a key follow each other too. A binary heap
//! of source numbers, ordered by prefix, key and number, finds the next key; with one source there is no heap.

use super::traits::{Source, Target, Watch};
use crate::spill::charge::Charge;
use std::cmp::Ordering;

/// Records between two looks at whether to go on.
const RECORDS_A_LOOK: u32 = 1024;

/// What a merge of so many sources takes beside them in bytes.
pub fn heap_bytes(sources: usize) -> usize {
    if sources == 1 { 0 } else { 2 * sources * size_of::<u32>() }
}

/// Merges all sources into the target. Blocks as they do.
///
/// # Errors
/// The first thing that fails: a source, the target, `watch`, or the charge of [`heap_bytes`]. Sources and target are to be
/// released by the caller in any case.
pub fn merge<C, S, T, W>(sources: &mut [S], target: &mut T, account: &mut C, watch: &mut W) -> Result<(), W::Error>
where
    C: Charge,
    S: Source<C>,
    T: Target<C>,
    W: Watch<C>,
    W::Error: From<T::Error>,
{
    let mut records = 0u32;
    if let [source] = sources {
        while source.advance(account)? {
            tick(&mut records, watch)?;
            source.settle();
            watch.record_begins(account);
            target.begin(source.key(), account)?;
            source.drain::<T, W::Error>(target, account)?;
            target.end(account)?;
            watch.record_ends(account);
        }
        return Ok(());
    }
    let list_bytes = heap_bytes(sources.len());
    account.try_charge(list_bytes).map_err(crate::spill::SpillError::from)?;
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
            tick(&mut records, watch)?;
            watch.record_begins(account);
            target.begin(sources[first as usize].key(), account)?;
            equal.clear();
            while let Some(&next) = heap.first() {
                let (a, b) = (&sources[first as usize], &sources[next as usize]);
                if next != first && (a.prefix() != b.prefix() || a.key() != b.key()) {
                    break;
                }
                equal.push(next);
                pop(&mut heap, sources);
            }
            for &number in &equal {
                sources[number as usize].drain::<T, W::Error>(target, account)?;
            }
            target.end(account)?;
            watch.record_ends(account);
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
fn tick<C, W: Watch<C>>(records: &mut u32, watch: &mut W) -> Result<(), W::Error> {
    *records = records.wrapping_add(1);
    if records.is_multiple_of(RECORDS_A_LOOK) { watch.go_on() } else { Ok(()) }
}

#[inline]
fn compare<C, S: Source<C>>(sources: &[S], a: u32, b: u32) -> Ordering {
    let (left, right) = (&sources[a as usize], &sources[b as usize]);
    left.prefix().cmp(&right.prefix()).then_with(|| left.key().cmp(right.key())).then_with(|| a.cmp(&b))
}

fn push<C, S: Source<C>>(heap: &mut Vec<u32>, number: u32, sources: &[S]) {
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

fn pop<C, S: Source<C>>(heap: &mut Vec<u32>, sources: &[S]) {
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
