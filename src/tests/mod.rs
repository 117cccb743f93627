//! Models of the protocols, explored by loom: `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release --lib
//! --target-dir target/loom`. Ordinary tests are beside the code, and in the `tests` folder.
#[cfg(loom)]
pub(crate) mod loom;
