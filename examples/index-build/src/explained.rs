//! Why writers were asked to spill: the decisions of a build, as `--explain` tells them, and as they are kept in the index
//! folder for `inspect`. The file beside the manifest is no part of the index: no digest and no size counts it, and a build
//! that was not asked for it writes none. Like every file of the folder it holds no time, so what is kept has none.
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The file's name in the index folder.
pub const FILE_NAME: &str = "decisions.json";
/// Larger than any file that a build writes: 64 decisions, 48 names in each.
const MOST_FILE_BYTES: u64 = 32 << 20;

/// The decisions of one build that asked for a spill, or with which a shortfall began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// How many there were in all; only the last ones are known.
    #[serde(rename = "explain_total")]
    pub total: u64,
    /// Oldest first.
    #[serde(rename = "explain")]
    pub decisions: Vec<Explanation>,
}

/// One decision. Amounts are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// From 1.
    pub number: u64,
    /// Milliseconds since the build's limiter was made; none in the index folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// Whether every writer was looked at; without that nobody is named as passed over.
    pub walked: bool,
    /// What the overage was measured against.
    pub source: String,
    pub overage_bytes: u64,
    pub exact_bytes: u64,
    pub kept_free_bytes: u64,
    pub published_bytes: u64,
    pub granted_bytes: u64,
    pub budget_bytes: Option<u64>,
    pub floor_bytes: u64,
    pub in_flight_bytes: u64,
    /// How many were asked, and what they had.
    pub requests: u64,
    pub requested_bytes: u64,
    /// The first of them.
    pub victims: Vec<Named>,
    /// Who was not asked, the largest first.
    pub passed_over: Vec<PassedOver>,
    pub passed_over_counts: Counts,
    pub shortfall_bytes: u64,
    /// The same in a line of words.
    pub text: String,
}

/// An arena, as `batch/field/arena`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    pub name: String,
    pub bytes: u64,
}

/// An arena that was not asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    pub name: String,
    pub bytes: u64,
    pub why: String,
}

/// How many arenas were not asked, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub in_flight: u64,
    pub below_floor: u64,
    pub exempt: u64,
    pub not_needed: u64,
    pub moved_on: u64,
}

impl Explained {
    /// What the index folder keeps: the same without times.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut kept = self.clone();
        kept.decisions.iter_mut().for_each(|decision| decision.at_ms = None);
        let mut bytes = serde_json::to_vec(&kept).expect("only numbers, strings and lists of them");
        bytes.push(b'\n');
        bytes
    }

    /// What the index in `dir` has kept; none if its build was not asked for it.
    ///
    /// # Errors
    /// [`Error::Io`] if it is there and cannot be read, [`Error::Corrupt`] if it is nothing that a build writes.
    pub fn read(dir: &Path) -> Result<Option<Explained>> {
        let path = dir.join(FILE_NAME);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("opening", &path)(error)),
        };
        let mut bytes = Vec::new();
        file.take(MOST_FILE_BYTES).read_to_end(&mut bytes).map_err(Error::io("reading", &path))?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::Corrupt {
            path,
            offset: 0,
            why: format!("not the decisions of a build: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_reads_back_without_its_times() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Explained::read(folder.path()).unwrap(), None);
        let named = Named { name: "b0/a\n/postings".to_owned(), bytes: 7 };
        let decision =
            Explanation { number: 66, victims: vec![named], text: "why".to_owned(), ..Explanation::default() };
        let mut told = Explained { total: 66, decisions: vec![Explanation { at_ms: Some(5), ..decision.clone() }] };
        std::fs::write(folder.path().join(FILE_NAME), told.to_bytes()).unwrap();
        told.decisions[0] = decision;
        assert_eq!(Explained::read(folder.path()).unwrap(), Some(told.clone()));
        let bytes = told.to_bytes();
        for damaged in [&bytes[..bytes.len() / 2], b"", b"{}", &[0; 99]] {
            std::fs::write(folder.path().join(FILE_NAME), damaged).unwrap();
            let error = Explained::read(folder.path()).unwrap_err();
            assert!(matches!(&error, Error::Corrupt { path, .. } if path.ends_with(FILE_NAME)), "{error}");
        }
    }
}
