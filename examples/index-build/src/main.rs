//! The command `index-build`; everything it does is in the library.

/// Index builders free and allocate blocks of a few sizes on many threads, which is what jemalloc is good at; the system
/// allocator stays where jemalloc does not build.
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    index_build::cli::run()
}
