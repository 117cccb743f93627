//! From arguments to an exit code. A command does its work first and speaks last, so that an error leaves stdout empty.
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use clap::Parser;
use serde::Serialize;

use super::args::{self, Arguments, Command, Output};
use super::progress::{Progress, Step};
use super::size::{grouped, human};
use super::{first_run, signal, table, warning};
use crate::build::{Watch, build};
use crate::compare::{self, CompareOptions};
use crate::error::{Error, Result};
use crate::expand::{ExpandOptions, expand};
use crate::inspect::inspect;
use crate::options::BuildOptions;
use crate::query::{Index, Query};
use crate::report::BuildReport;
use crate::verify::verify;

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    warning::listen(arguments.output.quiet);
    match command(arguments) {
        Ok(code) => code,
        Err(error) => {
            note(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

/// Help and version are answers; anything else is a usage error, told like every other error.
fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if error.use_stderr() {
        note(text.trim_start_matches("error: ").trim_end());
        ExitCode::from(2)
    } else {
        // nobody reads it any more: then nothing is missing either
        let _ = print(&text);
        ExitCode::SUCCESS
    }
}

fn command(Arguments { command, output }: Arguments) -> Result<ExitCode> {
    match command {
        None => first_run::first_run(output)?,
        Some(Command::Build(arguments)) => run_build(*arguments, output)?,
        Some(Command::Expand(arguments)) => run_expand(arguments, output)?,
        Some(Command::Compare(arguments)) => run_compare(arguments, output)?,
        Some(Command::Query(arguments)) => run_query(arguments, output)?,
        Some(Command::Inspect(arguments)) => run_inspect(&arguments, output)?,
        Some(Command::Verify(arguments)) => return run_verify(&arguments, output),
    }
    Ok(ExitCode::SUCCESS)
}

fn run_build(arguments: args::Build, output: Output) -> Result<()> {
    let watch = Arc::new(Watch::default());
    let _listener = signal::Listener::asking(&watch);
    let report = build_with_progress(&arguments.options(), &watch, output)?;
    match output {
        Output { json: true, .. } => return print_json(&report),
        Output { quiet: true, .. } => {}
        _ => print(&table::build(&report))?,
    }
    if let Some(explained) = &report.explain {
        note(table::explain(explained).trim_end());
    }
    Ok(())
}

/// A build under a progress bar.
pub(super) fn build_with_progress(options: &BuildOptions, watch: &Arc<Watch>, output: Output) -> Result<BuildReport> {
    let seen = Arc::clone(watch);
    let progress = Progress::start(output.quiet, move || Step {
        // Relaxed: figures to look at, each by itself
        bytes: Some((seen.done_bytes.load(Relaxed), seen.total_bytes.load(Relaxed))),
        note: format!("held {}, {}", human(seen.held_bytes.load(Relaxed)), table::many(seen.runs.load(Relaxed), "run")),
    });
    let built = build(options, watch);
    drop(progress);
    let swept = watch.swept_folders.load(Relaxed);
    if swept > 0 && !output.quiet {
        let bytes = human(watch.swept_bytes.load(Relaxed));
        note(&format!("removed {} of dead processes, {bytes}", table::many(swept, "folder")));
    }
    let report = built?;
    if watch.spills_to_ram.load(Relaxed) && report.spill_ram_bytes > 0 && !output.quiet {
        let bytes = human(report.spill_ram_bytes);
        note(&format!(
            "warning: {bytes} of spilled runs went to a file system in memory; --spill-dir names another folder"
        ));
    }
    Ok(report)
}

fn run_query(arguments: args::Query, output: Output) -> Result<()> {
    let _listener = signal::Listener::ending();
    let question = match (arguments.term, arguments.phrase, arguments.and, arguments.or) {
        (Some(term), ..) => Query::Term(term),
        (_, Some(text), ..) => Query::Phrase(text),
        (_, _, Some(text), _) => Query::And(text),
        (.., Some(text)) => Query::Or(text),
        _ => return Err(Error::Usage("a query needs --term, --phrase, --and or --or".to_owned())),
    };
    let answer = Index::open(&arguments.index)?.query(arguments.field.as_deref(), &question, arguments.ids)?;
    if output.json { print_json(&answer) } else { print(&table::query(&answer)) }
}

fn run_inspect(arguments: &args::Inspect, output: Output) -> Result<()> {
    let _listener = signal::Listener::ending();
    let inspected = inspect(&arguments.index)?;
    if output.json { print_json(&inspected) } else { print(&table::inspect(&inspected)) }
}

/// Differences are a result, which is printed, and a failure.
fn run_verify(arguments: &args::Verify, output: Output) -> Result<ExitCode> {
    let _listener = signal::Listener::ending();
    let verified = verify(&arguments.index, &arguments.truth)?;
    if output.json {
        print_json(&verified)?
    } else {
        print(&table::verify(&verified))?
    }
    if verified.passed() {
        return Ok(ExitCode::SUCCESS);
    }
    note(&match verified.differences.len() as u64 {
        0 => "nothing was compared: the truth says nothing of this kind of index".to_owned(),
        differences => format!("the index is not as the truth says, {}", table::many(differences, "difference")),
    });
    Ok(ExitCode::from(1))
}

fn run_expand(arguments: args::Expand, output: Output) -> Result<()> {
    let signal = Arc::new(AtomicI32::new(0));
    let _listener = signal::Listener::asking(&signal);
    let written = Arc::new(AtomicU64::new(0));
    let options =
        ExpandOptions { input: arguments.input, out: arguments.out, bytes: arguments.bytes, seed: arguments.seed };
    let (seen, total_bytes) = (Arc::clone(&written), options.bytes);
    let progress = Progress::start(output.quiet, move || Step {
        bytes: Some((seen.load(Relaxed), total_bytes)),
        note: String::new(),
    });
    let expanded = expand(&options, &written, &signal)?;
    drop(progress);
    match output {
        Output { json: true, .. } => print_json(&expanded),
        Output { quiet: true, .. } => Ok(()),
        _ => print(&table::pairs(&[
            ("passes", grouped(expanded.passes)),
            ("bytes", format!("{} ({})", grouped(expanded.bytes), human(expanded.bytes))),
            ("lines", grouped(expanded.lines)),
        ])),
    }
}

fn run_compare(arguments: args::Compare, output: Output) -> Result<()> {
    let signal = Arc::new(AtomicI32::new(0));
    let _listener = signal::Listener::asking(&signal);
    let options = CompareOptions {
        program: std::env::current_exe().map_err(|error| Error::Failed(format!("finding this program: {error}")))?,
        inputs: arguments.input,
        format: arguments.format.into(),
        fields: arguments.fields,
        threads: arguments.threads,
        rounds: arguments.rounds,
        modes: arguments.modes.into_iter().map(Into::into).collect(),
        writer_cap_bytes: arguments.writer_cap,
        batch_bytes: arguments.batch_bytes,
        dir: arguments.dir.unwrap_or_else(std::env::temp_dir),
    };
    let done = Arc::new(AtomicU64::new(0));
    let (seen, builds) = (Arc::clone(&done), compare::builds(&options));
    let progress = Progress::start(output.quiet, move || Step {
        bytes: None,
        note: format!("build {} of {builds}", (seen.load(Relaxed) + 1).min(builds)),
    });
    let comparison = compare::compare(&options, &done, &signal)?;
    drop(progress);
    if output.json { print_json(&comparison) } else { print(&table::compare(&comparison)) }
}

/// One JSON object, on one line.
pub(super) fn print_json(answer: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(answer).map_err(|error| Error::Failed(format!("writing JSON: {error}")))?;
    print(&(text + "\n"))
}

/// The result, on stdout.
pub(super) fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Error::Failed(format!("writing to stdout: {error}")))
}

/// A line on stderr.
pub(super) fn note(text: &str) {
    // a closed stderr is no reason to fail
    let _ = writeln!(std::io::stderr(), "index-build: {text}");
}
