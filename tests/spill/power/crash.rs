//! What a disk may hold after a loss of power, and whether a reader can live with it.
use super::disk::{Content, Disk, Node, Op, State, Tree};
use plimsoll::spill::SpillResult;
use plimsoll::spill::publish::present;
use std::collections::HashSet;
use std::path::Path;

/// What the next process does.
pub(super) type Again<'a> = &'a dyn Fn(&Disk) -> SpillResult<()>;

/// Changes of names whose folder was not synced after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Those before this operation are there, later ones are not: a journal.
    Until(usize),
    /// All are there but this one: a file system that keeps no order.
    AllBut(usize),
}

/// Writes whose file was not synced after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    Lost,
    Zeros,
    Whole,
}

/// Whether `log` has this sync after operation `number`.
fn synced(log: &[Op], number: usize, folder: Option<Node>, file: Option<Node>) -> bool {
    log[number..].iter().any(|op| match op {
        Op::SyncFolder(node) => Some(*node) == folder,
        Op::SyncFile(node) => Some(*node) == file,
        _ => false,
    })
}

/// What is on the disk if the power goes after `log`.
fn image(durable: &[Content], log: &[Op], names: Names, writes: Writes, exchange: bool) -> Disk {
    let mut state = State { nodes: durable.to_vec(), exchange, ..State::default() };
    for (number, op) in log.iter().enumerate() {
        match op {
            Op::Names(folder, _) => {
                let kept = match names {
                    Names::Until(end) => number < end,
                    Names::AllBut(lost) => number != lost,
                };
                if kept || synced(log, number, Some(*folder), None) {
                    state.apply(op);
                }
            }
            Op::Write(file, offset, bytes) => {
                if writes == Writes::Whole || synced(log, number, None, Some(*file)) {
                    state.apply(op);
                } else if writes == Writes::Zeros {
                    state.apply(&Op::Write(*file, *offset, vec![0; bytes.len()]));
                }
            }
            Op::Cut(file, _) => {
                if writes != Writes::Lost || synced(log, number, None, Some(*file)) {
                    state.apply(op);
                }
            }
            op => state.apply(op),
        }
    }
    state.durable = state.nodes.clone();
    Disk::of(state)
}

/// Every state that there may be after a crash behind any operation: how many, and those in which a reader finds neither
/// the old content nor the new, or not the new one after it was acknowledged, or from which `again` does not get to the new
/// one alone.
pub(super) fn violations(
    disk: &Disk,
    place: &str,
    old: Option<&Tree>,
    new: &Tree,
    again: Option<Again<'_>>,
) -> (usize, Vec<String>) {
    let (durable, log, exchange) = {
        let state = disk.state();
        (state.durable.clone(), state.log.clone(), state.exchange)
    };
    let (mut states, mut violations, mut tried) = (0, Vec::new(), HashSet::new());
    for end in 0..=log.len() {
        let log = &log[..end];
        let acknowledged = log.iter().any(|op| matches!(op, Op::Acknowledged));
        let changes = || (0..end).filter(|&number| matches!(log[number], Op::Names(..)));
        let until = changes().map(|number| Names::Until(number + 1));
        for names in std::iter::once(Names::Until(0)).chain(until).chain(changes().map(Names::AllBut)) {
            for writes in [Writes::Lost, Writes::Zeros, Writes::Whole] {
                let image = image(&durable, log, names, writes, exchange);
                states += 1;
                let found = present(&image, Path::new(place)).ok().and_then(|path| image.tree(path));
                let fits = found.as_ref() == Some(new) || !acknowledged && found.as_ref() == old;
                let told =
                    || format!("after {:?}, {end} of {}, {names:?}, {writes:?}", log.last(), disk.state().log.len());
                if !fits {
                    violations.push(format!("{}: {found:?}", told()));
                    continue;
                }
                let Some(again) = again else { continue };
                if tried.insert(image.tree("/")) {
                    let result = again(&image);
                    if result.is_err() || image.tree(place).as_ref() != Some(new) || !alone(&image, place) {
                        violations.push(format!("{}: again: {result:?}: {:?}", told(), image.tree("/")));
                    }
                }
            }
        }
    }
    (states, violations)
}

/// Nothing temporary is left beside the place.
fn alone(image: &Disk, place: &str) -> bool {
    let parent = Path::new(place).parent().unwrap();
    image.tree(parent).unwrap().keys().all(|path| !path.contains(".tmp-"))
}
