//! The job without arguments: real text, a small budget, forced spills, and an index that is checked.
//!
//! | file | what is in it |
//! |---|---|
//! | `sources` | what is indexed, and where to |
//! | `scan` | the plain scan that the index is checked against |
//! | [`mod@self`] | the job from beginning to end |
//!
//! It is done only if every term agrees with the scan and nothing is held at the end; anything else is a failure.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde::Serialize;

use super::args::Output;
use super::size::{grouped, human};
use super::{run, signal, table};
use crate::build::Watch;
use crate::error::{Error, Result};
use crate::options::BuildOptions;
use crate::query::{Index, Query};
use crate::report::BuildReport;

mod scan;
mod sources;

const BUDGET_BYTES: usize = 64 << 20;
const FLOOR_BYTES: usize = 1 << 20;
const THREADS: usize = 8;

/// What the job answers.
#[derive(Debug, Serialize)]
struct Answer {
    /// `cargo` or `made`.
    source: &'static str,
    files: usize,
    /// The index folder.
    index: String,
    build: BuildReport,
    terms: Vec<Term>,
}

/// A term, as the index has it; the plain scan said the same.
#[derive(Debug, Serialize)]
struct Term {
    term: String,
    class: &'static str,
    df: u64,
    occurrences: u64,
}

pub(super) fn first_run(output: Output) -> Result<()> {
    let watch = Arc::new(Watch::default());
    let _listener = signal::Listener::asking(&watch);
    let folder = sources::target_folder().join("index-build");
    std::fs::create_dir_all(&folder).map_err(Error::io("creating", &folder))?;

    let found = match sources::registry() {
        Some(root) => sources::rust_sources(&root, sources::LIMIT_BYTES)?,
        None => sources::Input::default(),
    };
    // kept to the end of the job, where it is removed
    let made = if found.files.is_empty() { Some(sources::Log::make(&folder, &watch.signal)?) } else { None };
    let (source, input) = made.as_ref().map_or(("cargo", &found), |log| ("made", &log.input));
    let what = match source {
        "cargo" => format!("{} Rust sources of cargo's registry", grouped(input.files.len() as u64)),
        _ => "a log made in code".to_owned(),
    };
    if !output.quiet && !output.json {
        run::note(&format!("indexing {what}, {}", human(input.bytes)));
    }

    let options = BuildOptions {
        inputs: input.files.clone(),
        index: folder.join("sources"),
        format: crate::options::Format::Text,
        budget_bytes: Some(BUDGET_BYTES),
        floor_bytes: Some(FLOOR_BYTES),
        threads: THREADS,
        force: true,
        ..BuildOptions::default()
    };
    let report = run::build_with_progress(&options, &watch, output)?;
    let terms = check(&options, &input.files, &watch)?;
    let left = (report.held_at_end_bytes, report.published_at_end_bytes, report.accounting_errors);
    if left != (0, 0, 0) {
        let (held, published, errors) = left;
        return Err(Error::Failed(format!(
            "accounting is not back at 0: {held} bytes held, {published} published, {errors} accounting errors"
        )));
    }

    let index = options.index.display().to_string();
    let answer = Answer { source, files: input.files.len(), index, build: report, terms };
    if output.json { run::print_json(&answer) } else { run::print(&text(&answer, &what)) }
}

/// Looks up the chosen terms in the index and in the input.
fn check(options: &BuildOptions, files: &[PathBuf], watch: &Watch) -> Result<Vec<Term>> {
    let choices = scan::choose(files)?;
    let counts = scan::count(files, &choices, |_| match watch.signal.load(Relaxed) {
        0 => Ok(()),
        signal => Err(Error::Interrupted { signal }),
    })?;
    let index = Index::open(&options.index)?;
    let mut terms = Vec::new();
    for (choice, scanned) in choices.into_iter().zip(counts) {
        let answer = index.query(None, &Query::Term(choice.term.clone()), 0)?;
        let (df, occurrences) = (answer.df, answer.occurrences.unwrap_or(0));
        if (df, occurrences) != (scanned.df, scanned.occurrences) {
            return Err(Error::Failed(format!(
                "term {:?}: the index says {df} documents and {occurrences} occurrences, a plain scan of the input {} and {}",
                choice.term, scanned.df, scanned.occurrences
            )));
        }
        terms.push(Term { term: choice.term, class: choice.class, df, occurrences });
    }
    Ok(terms)
}

fn text(answer: &Answer, what: &str) -> String {
    let report = &answer.build;
    let mut out = format!("Indexed {what} into {}\n\n{}\n", answer.index, table::build(report));
    let spills = match report.forced_spills {
        0 => "No spill was forced: everything fitted into the budget.".to_owned(),
        spills => format!("The budget forced {}; their runs were merged and are gone.", table::many(spills, "spill")),
    };
    let mut rows = vec![["term", "class", "documents", "occurrences"].map(str::to_owned).to_vec()];
    for term in &answer.terms {
        rows.push(vec![term.term.clone(), term.class.to_owned(), grouped(term.df), grouped(term.occurrences)]);
    }
    out += &format!("{}\n", table::aligned(&rows, false));
    out += &format!("All {} terms agree with a plain scan of the input.\n{spills}\n", answer.terms.len());
    out += "Accounting is back at exactly 0.\n";
    out
}
