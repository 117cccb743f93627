//! Length and SHA-256 of all input, in input order: a pass of its own, beside the batches.
use crate::accounting::Account;
use crate::error::{Error, Result};
use crate::input::batch::changed;
use crate::input::lines::read;
use crate::input::list::Inputs;
use sha2::{Digest, Sha256};
use std::fs::File;

/// Reads everything once. `go_on` is asked before each block.
pub fn digest(
    inputs: &Inputs,
    block_bytes: usize,
    account: &mut impl Account,
    go_on: &mut impl FnMut() -> Result<()>,
) -> Result<(u64, String)> {
    account.charge(block_bytes);
    let mut block = vec![0u8; block_bytes];
    let digested = pass(inputs, &mut block, go_on);
    drop(block);
    account.release(block_bytes);
    digested
}

fn pass(inputs: &Inputs, block: &mut [u8], go_on: &mut impl FnMut() -> Result<()>) -> Result<(u64, String)> {
    let (mut sha, mut bytes) = (Sha256::new(), 0u64);
    for input in &inputs.files {
        let mut file = File::open(&input.path).map_err(Error::io("opening", &input.path))?;
        let mut length = 0u64;
        loop {
            go_on()?;
            let got = read(&mut file, &input.path, block)?;
            if got == 0 {
                break;
            }
            sha.update(&block[..got]);
            length += got as u64;
            if length > input.bytes {
                break;
            }
        }
        if length != input.bytes {
            return Err(changed(&input.path));
        }
        bytes += length;
    }
    Ok((bytes, hex(&sha.finalize())))
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Off;
    use crate::options::Format;

    #[test]
    fn files_are_digested_as_if_they_were_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("1"), "ab").unwrap();
        std::fs::write(folder.path().join("2"), "").unwrap();
        std::fs::write(folder.path().join("3"), "c").unwrap();
        let inputs = crate::input::list(&[folder.path().to_owned()], Format::Text).unwrap();
        let (bytes, sha) = digest(&inputs, 1, &mut Off, &mut || Ok(())).unwrap();
        assert_eq!(bytes, 3);
        assert_eq!(sha, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        std::fs::write(folder.path().join("3"), "cd").unwrap();
        assert!(digest(&inputs, 64, &mut Off, &mut || Ok(())).is_err());
    }
}
