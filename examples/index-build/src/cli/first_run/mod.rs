//! The job without arguments: real text, a small budget, forced spills, and an index that is checked.
//!
//! | file | what is in it |
//! |---|---|
//! | `sources` | what is indexed, and where to |
//! | `scan` | the plain scan that the index is checked against |
//! | this one | the job from beginning to end |
//!
//! It is done only if every term agrees with the scan and nothing is held at the end; anything else is a failure. The
//! sources of a small machine fit into the budget; their text is then expanded and indexed once more, so that the job
//! always shows a budget at work.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde::Serialize;

use super::args::Output;
use super::size::{grouped, human};
use super::{run, signal, table};
use crate::build::Watch;
use crate::error::{Error, Result};
use crate::options::{BuildOptions, Format};
use crate::query::{Index, Query};
use crate::report::BuildReport;

mod scan;
mod sources;

use sources::{Input, Made};

const BUDGET_BYTES: usize = 64 << 20;
const FLOOR_BYTES: usize = 1 << 20;
const THREADS: usize = 8;
/// Twice the default: what eight threads hold of their batches is then well above the budget.
const BATCH_BYTES: u64 = 32 << 20;

/// Fewer sources than this are not expanded: there is no project to speak of.
const WORTH_EXPANDING_BYTES: u64 = 16 << 20;

/// What the job answers.
#[derive(Debug, Serialize)]
struct Answer {
    /// `cargo` or `made`.
    source: &'static str,
    #[serde(flatten)]
    first: Checked,
    /// The same text expanded, if no spill was forced without that.
    expanded: Option<Checked>,
}

/// An index that agrees with its input.
#[derive(Debug, Serialize)]
struct Checked {
    /// The input in words.
    what: String,
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
    let sources = match sources::registry() {
        Some(root) => sources::rust_sources(&root, sources::LIMIT_BYTES)?,
        None => Input::default(),
    };
    let job = |what: String, input: &Input, name| build_and_check(what, input, &folder.join(name), &watch, output);

    let answer = if sources.files.is_empty() {
        let made = Made::log(&folder, &watch.signal)?;
        let first = job("a log made in code".to_owned(), &made.input, "sources")?;
        Answer { source: "made", first, expanded: None }
    } else {
        let what = format!("{} Rust sources of cargo's registry", grouped(sources.files.len() as u64));
        let first = job(what, &sources, "sources")?;
        let expanded = if first.build.forced_spills == 0 && sources.bytes >= WORTH_EXPANDING_BYTES {
            let made = Made::of(&sources, &folder, &watch.signal)?;
            Some(job("the same text expanded".to_owned(), &made.input, "expanded")?)
        } else {
            None
        };
        Answer { source: "cargo", first, expanded }
    };
    if output.json { run::print_json(&answer) } else { run::print(&text(&answer)) }
}

/// Builds an index of `input` and holds it against a plain scan; whatever does not agree is an error.
fn build_and_check(what: String, input: &Input, index: &Path, watch: &Arc<Watch>, output: Output) -> Result<Checked> {
    if !output.quiet && !output.json {
        run::note(&format!("indexing {what}, {}", human(input.bytes)));
    }
    let options = BuildOptions {
        inputs: input.files.clone(),
        index: index.to_owned(),
        format: Format::Text,
        budget_bytes: Some(BUDGET_BYTES),
        floor_bytes: Some(FLOOR_BYTES),
        threads: THREADS,
        batch_bytes: BATCH_BYTES,
        force: true,
        ..BuildOptions::default()
    };
    // Relaxed: a bar that starts again
    watch.done_bytes.store(0, Relaxed);
    watch.runs.store(0, Relaxed);
    let build = run::build_with_progress(&options, watch, output)?;
    let left = (build.held_at_end_bytes, build.published_at_end_bytes, build.accounting_errors);
    if left != (0, 0, 0) {
        let (held, published, errors) = left;
        return Err(Error::Failed(format!(
            "accounting is not back at 0: {held} bytes held, {published} published, {errors} accounting errors"
        )));
    }
    let terms = check(index, &input.files, watch)?;
    Ok(Checked { what, files: input.files.len(), index: index.display().to_string(), build, terms })
}

/// Looks up the chosen terms in the index and in the input.
fn check(index: &Path, files: &[PathBuf], watch: &Watch) -> Result<Vec<Term>> {
    let choices = scan::choose(files)?;
    let counts = scan::count(files, &choices, |_| match watch.signal.load(Relaxed) {
        0 => Ok(()),
        signal => Err(Error::Interrupted { signal }),
    })?;
    let index = Index::open(index)?;
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

fn text(answer: &Answer) -> String {
    let mut out = one_text(&answer.first);
    if let Some(expanded) = &answer.expanded {
        out.push('\n');
        out += &one_text(expanded);
    }
    out
}

fn one_text(checked: &Checked) -> String {
    let Checked { what, index, build, terms, .. } = checked;
    let mut out = format!("Indexed {what} into {index}\n\n{}\n", table::build(build));
    let mut rows = vec![["term", "class", "documents", "occurrences"].map(str::to_owned).to_vec()];
    for term in terms {
        rows.push(vec![term.term.clone(), term.class.to_owned(), grouped(term.df), grouped(term.occurrences)]);
    }
    out += &table::aligned(&rows, false);
    out += &format!("\nAll {} terms agree with a plain scan of the input.\n", terms.len());
    out += &match build.forced_spills {
        0 => "No spill was forced: everything fitted into the budget.\n".to_owned(),
        spills => format!("The budget forced {}.\n", table::many(spills, "spill")),
    };
    out += "Accounting is back at exactly 0.\n";
    out
}
