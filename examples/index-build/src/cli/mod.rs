//! The command: what it may be told, what it says, and how it ends.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the options with their defaults and help |
//! | [`size`] | sizes, read strictly and written for readers |
//! | `run` | from arguments to an exit code |
//! | `table` | results for readers |
//! | `signal` | Ctrl-C and SIGTERM |
//! | `progress` | the bar on a terminal |
//! | `warning` | what the library warns of, on stderr |
//! | `first_run` | the job without arguments |
//!
//! stdout carries the result and nothing else, and nothing at all after an error; everything else goes to stderr.
mod args;
mod first_run;
mod progress;
mod run;
mod signal;
pub mod size;
mod table;
mod warning;

pub use run::run;
