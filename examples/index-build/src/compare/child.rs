//! One build in a process of its own: start, wait, read what it says. A signal that comes meanwhile is handed on to the
//! child, which removes what is temporary, and is waited for.
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use serde::Deserialize;

use super::CompareOptions;
use crate::error::{Error, Result};
use crate::options::{Accounting, Format};

/// The figures of one build that a row is made of.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Measured {
    pub(super) mb_per_s: f64,
    pub(super) user_seconds: f64,
    pub(super) sys_seconds: f64,
    pub(super) publishes: u64,
    pub(super) notifications: u64,
    pub(super) index_sha256: String,
    #[serde(skip)]
    pub(super) switches: Option<Switches>,
}

/// Context switches.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Switches {
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
}

/// A folder for the indexes, removed with all that is in it.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn create(parent: &Path) -> Result<Scratch> {
        let path = parent.join(format!("index-build-compare-{}", std::process::id()));
        fs::create_dir(&path).map_err(Error::io("creating", &path))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // nothing better can be done about a folder that will not go
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Builds once and removes the index.
pub(super) fn run(
    options: &CompareOptions,
    scratch: &Scratch,
    threads: usize,
    mode: Accounting,
    signal: &AtomicI32,
) -> Result<Measured> {
    let index = scratch.0.join("index");
    let before = switches_of_children();
    let mut child = Command::new(&options.program)
        .args(arguments(options, &index, threads, mode))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io("starting", &options.program))?;
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(Error::io("waiting for", &options.program))? {
            break status;
        }
        let asked = signal.load(Relaxed);
        if asked != 0 {
            stop(&mut child);
            return Err(Error::Interrupted { signal: asked });
        }
        sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    // Ctrl-C reaches the child by itself
    let asked = signal.load(Relaxed);
    if asked != 0 {
        return Err(Error::Interrupted { signal: asked });
    }
    if !status.success() {
        let why = stderr.trim().trim_start_matches("index-build: ");
        let why = format!("the build with accounting {} and {threads} threads ended with {status}: {why}", mode.name());
        return Err(if status.code() == Some(2) { Error::Usage(why) } else { Error::Failed(why) });
    }
    let mut measured: Measured = serde_json::from_str(&stdout).map_err(|error| {
        Error::Failed(format!("{}: what a build said is not understood: {error}", options.program.display()))
    })?;
    measured.switches = before.zip(switches_of_children()).map(|(before, after)| Switches {
        voluntary: after.voluntary.saturating_sub(before.voluntary),
        involuntary: after.involuntary.saturating_sub(before.involuntary),
    });
    fs::remove_dir_all(&index).map_err(Error::io("removing", &index))?;
    Ok(measured)
}

/// Values are tied to their options, so that one with a leading dash is no option.
fn arguments(options: &CompareOptions, index: &Path, threads: usize, mode: Accounting) -> Vec<OsString> {
    fn tied(option: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
        let mut argument = OsString::from(option);
        argument.push("=");
        argument.push(value);
        argument
    }
    let mut arguments: Vec<OsString> = ["build", "--json", "--quiet", "--sync=none"].map(OsString::from).to_vec();
    arguments.extend(options.inputs.iter().map(|path| tied("--input", path)));
    arguments.push(tied("--index", index));
    arguments.push(tied("--accounting", mode.name()));
    arguments.push(tied("--threads", threads.to_string()));
    arguments.push(tied("--batch-bytes", options.batch_bytes.to_string()));
    let format = match options.format {
        Format::Auto => "auto",
        Format::Text => "text",
        Format::Jsonl => "jsonl",
    };
    arguments.push(tied("--format", format));
    if let Some(fields) = &options.fields {
        arguments.push(tied("--fields", fields.join(",")));
    }
    if let Some(cap) = options.writer_cap_bytes {
        arguments.push(tied("--writer-cap", cap.to_string()));
    }
    arguments
}

/// Reads a pipe to its end on a thread, so that the child never waits for us.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // what was read before an error is still worth showing
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn text(pipe: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&pipe.join().unwrap_or_default()).into_owned()
}

/// Asks the child to end in the way that cleans up, and waits for it.
fn stop(child: &mut Child) {
    #[cfg(unix)]
    {
        let asked =
            rustix::process::kill_process(rustix::process::Pid::from_child(child), rustix::process::Signal::TERM);
        if asked.is_ok() {
            let _ = child.wait();
            return;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Of all children that were waited for so far; they run one after the other, so a difference belongs to one of them.
#[cfg(unix)]
fn switches_of_children() -> Option<Switches> {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).ok()?;
    Some(Switches {
        voluntary: u64::try_from(usage.voluntary_context_switches()).ok()?,
        involuntary: u64::try_from(usage.involuntary_context_switches()).ok()?,
    })
}

#[cfg(not(unix))]
fn switches_of_children() -> Option<Switches> {
    None
}
