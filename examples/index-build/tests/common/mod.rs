//! What the tests of whole builds share: small inputs made in code, and builds of them.
#![allow(dead_code, reason = "each test file uses a part of it")]
use index_build::build::{Watch, build};
use index_build::error::Result;
use index_build::options::{BuildOptions, Sync};
use index_build::report::BuildReport;
use std::path::{Path, PathBuf};

/// An index folder that does not exist yet.
pub(crate) fn fresh(folder: &Path) -> PathBuf {
    let mut paths = (0..).map(|number| folder.join(format!("index-{number}")));
    paths.find(|path| !path.exists()).expect("there is always another number")
}

/// Options for a small build of `inputs` into a fresh folder.
pub(crate) fn options(folder: &Path, inputs: &[PathBuf]) -> BuildOptions {
    BuildOptions {
        inputs: inputs.to_vec(),
        index: fresh(folder),
        batch_bytes: 16 << 10,
        block_bytes: 1 << 10,
        threads: 2,
        sync: Sync::None,
        ..BuildOptions::default()
    }
}

/// Builds, with nobody watching.
pub(crate) fn run(options: &BuildOptions) -> Result<BuildReport> {
    build(options, &Watch::default())
}

/// A log of `lines` lines: few words that occur often, many that occur once.
pub(crate) fn log(lines: u32) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let mixed = line.wrapping_mul(0x9E37_79B9);
        text += &format!("Level{} request {mixed:08x} of user-{} took {} ms\r\n", line % 5, mixed % 97, mixed % 1000);
        if line % 64 == 0 {
            text += &format!("blob {}\n\n", format!("{mixed:x}").repeat(60));
        }
    }
    text
}

/// The same as JSON lines with three fields.
pub(crate) fn json_log(lines: u32) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let mixed = line.wrapping_mul(0x9E37_79B9);
        text += &format!(
            "{{\"time\":\"t{line}\",\"message\":\"request {mixed:08x}\\nuser \\\"{}\\\"\",\"n\":{line},\"level\":\"L{}\"}}\n",
            mixed % 97,
            line % 5
        );
    }
    text
}

/// Writes an input file.
pub(crate) fn write(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("the test's folder can be written");
    path
}

/// Names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("its entries too").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
