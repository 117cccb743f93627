//! What the fuzz targets share. Each feeds a reader with a file that is hostile in one of three ways, by the input's first
//! byte: any bytes at all; a whole file with one change, which has to be refused; a file that says whatever the input
//! says, with check-sums that fit it, so that the reader gets behind them. Every time the reader ends with an error or
//! with what is in the file, and takes no more memory than the file's size justifies.
//!
//! No seeds are stored: every target makes its whole files itself.

mod counted;
mod input;
mod memory;

pub use counted::most_allocated;
pub use input::Input;
pub use memory::Memory;
