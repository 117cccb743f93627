//! A real inverted-index builder on plimsoll: the main job of the project, and the measure of everything in it.
//!
//! | folder or file | what is in it |
//! |---|---|
//! | [`options`], [`report`], [`error`] | what a build is asked for, what it answers, how it fails |
//! | [`input`] | files, batches cut from the input alone, documents, JSON lines |
//! | [`token`] | what a token is |
//! | [`writer`] | one field of one batch in memory: vocabulary, posting arena |
//! | [`run`] | spilled runs, by plimsoll's spool and merge |
//! | [`segment`] | the files of a segment: written once, read by position |
//! | [`manifest`], [`explained`] | what an index folder holds: the index, and why its writers spilled |
//! | [`build`] | threads, admission, spills, publish |
//! | [`accounting`] | off, per term (the reference's way), batched (plimsoll's), or leased (under a hard limit) |
//! | [`query`], [`verify`], [`inspect`], [`expand`], [`compare`] | the other commands |
//! | [`cli`] | options, sizes, exit codes, tables, progress |
//!
//! Imports go one way: `cli` uses the commands, those use `build`, `segment`, `manifest` and `explained`, and these use `input`,
//! `token`, `writer` and `run`. What is held is said to plimsoll by `accounting` and `build`; runs and their merges are its
//! own, used by `run` and `build`.
pub mod accounting;
pub mod build;
pub mod cli;
pub mod compare;
pub mod error;
pub mod expand;
pub mod explained;
pub mod input;
pub mod inspect;
pub mod manifest;
pub mod options;
pub mod query;
pub mod report;
pub mod run;
pub mod segment;
pub mod token;
pub mod verify;
pub mod writer;
