//! A plain scan of the input, which the index is checked against. It shares no code with the builder and is written the
//! other way round: each line is decoded as a whole and cut into characters, where the builder works on bytes.
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Terms are chosen from no more of the input than this.
const SAMPLE_BYTES: u64 = 8 << 20;

/// In how many documents a term is, and how often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) df: u64,
    pub(super) occurrences: u64,
}

/// A term to check, and the kind of term that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) term: String,
    pub(super) class: &'static str,
}

/// The terms of a line, in order.
fn terms(line: &[u8], mut each: impl FnMut(&str)) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    let mut term = String::new();
    for character in text.chars() {
        if character.is_alphanumeric() {
            term.extend(character.to_lowercase().next());
        } else if !term.is_empty() {
            each(&term);
            term.clear();
        }
    }
    if !term.is_empty() {
        each(&term);
    }
}

/// Hands on the lines of a file until `each` says no.
fn lines(path: &Path, mut each: impl FnMut(&[u8]) -> Result<bool>) -> Result<()> {
    let mut file = BufReader::with_capacity(1 << 18, File::open(path).map_err(Error::io("opening", path))?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = file.read_until(b'\n', &mut line).map_err(Error::io("reading", path))?;
        if read == 0 || !each(&line)? {
            return Ok(());
        }
    }
}

/// Up to 20 terms, the same ones for the same input: 6 frequent, 5 from the middle, 5 that occur once in the sample and 4
/// that are absent from it.
pub(super) fn choose(files: &[PathBuf]) -> Result<Vec<Choice>> {
    let mut counts = BTreeMap::<String, u64>::new();
    let mut left = SAMPLE_BYTES;
    for path in files {
        lines(path, |line| {
            left = left.saturating_sub(line.len() as u64);
            terms(line, |term| match counts.get_mut(term) {
                Some(count) => *count += 1,
                None => drop(counts.insert(term.to_owned(), 1)),
            });
            Ok(left > 0)
        })?;
        if left == 0 {
            break;
        }
    }
    Ok(pick(&counts))
}

fn pick(counts: &BTreeMap<String, u64>) -> Vec<Choice> {
    let mut common: Vec<(&String, u64)> =
        counts.iter().map(|(term, &count)| (term, count)).filter(|(_, count)| *count > 1).collect();
    common.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let rare: Vec<&String> = counts.iter().filter(|(_, count)| **count == 1).map(|(term, _)| term).collect();
    let mut chosen: Vec<Choice> = Vec::new();
    let mut choose = |term: String, class| {
        let new = chosen.iter().all(|known| known.term != term);
        if new {
            chosen.push(Choice { term, class });
        }
        new
    };
    for (term, _) in common.iter().take(6) {
        choose((*term).clone(), "frequent");
    }
    // at the ranks n/32, n/16, n/8, n/4, n/2
    for part in [32, 16, 8, 4, 2] {
        if let Some((term, _)) = common.get(common.len() / part) {
            choose((*term).clone(), "middle");
        }
    }
    for sixth in 1..=5 {
        if let Some(term) = rare.get(rare.len() * sixth / 6) {
            choose((*term).clone(), "rare");
        }
    }
    // joined, repeated, extended and upper-case forms of terms that occur
    let mut absent = 0;
    for window in common.windows(3).take(100) {
        let [a, b, c] = [0, 1, 2].map(|at| window[at].0);
        for term in [format!("{a}{b}{c}"), format!("{c}{c}{c}"), format!("{a}{b}zzq"), a.to_uppercase() + "X"] {
            if absent < 4 && !counts.contains_key(&term) && choose(term, "absent") {
                absent += 1;
            }
        }
    }
    chosen
}

/// Counts each of `choices` in the whole input; `done` is told of the bytes that have been scanned and may end the work.
pub(super) fn count(
    files: &[PathBuf],
    choices: &[Choice],
    mut done: impl FnMut(u64) -> Result<()>,
) -> Result<Vec<Counts>> {
    let places: HashMap<&str, usize> =
        choices.iter().enumerate().map(|(place, choice)| (choice.term.as_str(), place)).collect();
    let mut counts = vec![Counts::default(); choices.len()];
    let mut last_line = vec![0; choices.len()];
    let mut number = 0u64;
    for path in files {
        lines(path, |line| {
            number += 1;
            terms(line, |term| {
                if let Some(&place) = places.get(term) {
                    counts[place].occurrences += 1;
                    counts[place].df += u64::from(last_line[place] != number);
                    last_line[place] = number;
                }
            });
            done(line.len() as u64)?;
            Ok(true)
        })?;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_runs_of_alphanumeric_characters_in_simple_lower_case() {
        let mut found = Vec::new();
        terms("Ab_c1 İΣ ΟΔΟΣ x\u{fffd}y 東京2\r\n".as_bytes(), |term| found.push(term.to_owned()));
        assert_eq!(found, ["ab", "c1", "iσ", "οδοσ", "x", "y", "東京2"]);
        found.clear();
        terms(b"caf\xe9 ol\xc3\xa9", |term| found.push(term.to_owned()));
        assert_eq!(found, ["caf", "olé"]);
    }

    #[test]
    fn documents_and_occurrences_are_counted_over_all_files() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, "one two one\n\nTWO").unwrap();
        std::fs::write(&b, "one").unwrap();
        let choices = ["one", "two", "ten"].map(|term| Choice { term: term.to_owned(), class: "" });
        let mut bytes = 0;
        let counts = count(&[a, b], &choices, |line| {
            bytes += line;
            Ok(())
        });
        let expected = [(2, 3), (2, 2), (0, 0)].map(|(df, occurrences)| Counts { df, occurrences });
        assert_eq!(counts.unwrap(), expected);
        assert_eq!(bytes, 19);
    }

    #[test]
    fn twenty_different_terms_are_chosen_and_always_the_same() {
        let counts: BTreeMap<String, u64> =
            (0..500u64).map(|i| (format!("term{i}"), if i < 100 { 1 } else { i })).collect();
        let chosen = pick(&counts);
        assert_eq!(chosen, pick(&counts));
        let of = |class| chosen.iter().filter(|choice| choice.class == class).count();
        assert_eq!((of("frequent"), of("middle"), of("rare"), of("absent")), (6, 5, 5, 4));
        assert_eq!(chosen[0].term, "term499");
    }
}
