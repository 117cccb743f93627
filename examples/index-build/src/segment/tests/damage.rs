//! A damaged file is an error or makes no difference; it is never a panic, a wrong answer or a large allocation.
use super::*;
use crate::error::Error;

/// A small segment that has everything: two fields, inline postings, postings in the files, blocks of 128.
fn small() -> Model {
    let long = (0..130).map(|doc| (doc, vec![1, 4])).collect();
    let title = [(b"beta".to_vec(), [(0, vec![0]), (9, vec![3, 4])].into())].into();
    let mut model = one_field([
        (b"alpha".to_vec(), long),
        (b"alphabet".to_vec(), vec![(2, (0..140).collect())]),
        (b"once".to_vec(), vec![(7, vec![3])]),
    ]);
    model.insert("title".into(), title);
    model
}

fn check(dir: &Path, what: &str) {
    match read(dir, 0) {
        Ok(model) => assert_eq!(model, small(), "{what}: another answer"),
        Err(Error::Corrupt { path, .. }) => assert!(path.starts_with(dir), "{what}: {}", path.display()),
        Err(other) => panic!("{what}: {other}"),
    }
}

#[test]
fn every_flipped_bit_is_an_error_or_makes_no_difference() {
    let dir = tempfile::tempdir().unwrap();
    for file in write(dir.path(), 0, &small(), 200).unwrap() {
        let path = dir.path().join(&file.name);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            let result = read(dir.path(), 0);
            assert!(matches!(result, Err(Error::Corrupt { .. })), "{} bit {at}: {result:?}", file.name);
        }
        std::fs::write(&path, &good).unwrap();
    }
    check(dir.path(), "restored");
}

#[test]
fn every_truncated_or_lengthened_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for file in write(dir.path(), 0, &small(), 200).unwrap() {
        let path = dir.path().join(&file.name);
        let good = std::fs::read(&path).unwrap();
        let longer = [good.as_slice(), &[0]].concat();
        for bytes in (0..good.len()).map(|n| &good[..n]).chain([longer.as_slice()]) {
            std::fs::write(&path, bytes).unwrap();
            let result = read(dir.path(), 0);
            assert!(matches!(result, Err(Error::Corrupt { .. })), "{} at {}", file.name, bytes.len());
        }
        std::fs::write(&path, &good).unwrap();
    }
}

#[test]
fn a_file_of_another_segment_or_of_another_part_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0, &small(), 200).unwrap();
    write(dir.path(), 1, &small(), 201).unwrap();
    let at = |name: &str| dir.path().join(name);
    let original = std::fs::read(at("seg-000000.post")).unwrap();
    for other in ["seg-000001.post", "seg-000000.pos"] {
        std::fs::copy(at(other), at("seg-000000.post")).unwrap();
        assert!(matches!(read(dir.path(), 0), Err(Error::Corrupt { .. })), "{other}");
    }
    std::fs::write(at("seg-000000.post"), original).unwrap();
    check(dir.path(), "restored");
    std::fs::remove_file(at("seg-000000.post")).unwrap();
    let error = read(dir.path(), 0).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("seg-000000.post")), "{error}");
}

/// Changes the body or the trailer of a file and makes every checksum right again, as somebody would who means harm.
fn forge(dir: &Path, part: Part, change: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
    let path = dir.join(part_name(0, part));
    let bytes = std::fs::read(&path).unwrap();
    let (rest, footer) = bytes.split_at(bytes.len() - format::FOOTER_BYTES);
    let mut footer = format::Footer::decode(footer.try_into().unwrap(), part, bytes.len() as u64, &path).unwrap();
    let (body, trailer) = rest.split_at(footer.trailer_offset as usize);
    let (mut body, mut trailer) = (body.to_vec(), trailer.to_vec());
    change(&mut body, &mut trailer);
    footer.trailer_offset = body.len() as u64;
    footer.trailer_bytes = trailer.len() as u64;
    footer.trailer_crc = crc32c::crc32c(&trailer);
    std::fs::write(&path, [&body[..], &trailer, &footer.encode(part)].concat()).unwrap();
}

#[test]
fn forged_bytes_with_right_checksums_are_no_panic_and_no_large_allocation() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0, &small(), 200).unwrap();
    let restore: Vec<_> =
        Part::ALL.iter().map(|&part| (part, std::fs::read(dir.path().join(part_name(0, part))).unwrap())).collect();
    for (part, good) in &restore {
        let path = dir.path().join(part_name(0, *part));
        for at in 0..good.len() {
            for value in [0, 1, 0x21, 0x7f, 0x80, 0xff] {
                std::fs::write(&path, good).unwrap();
                let fits = |from: usize, bytes: &mut [u8]| {
                    if let Some(byte) = at.checked_sub(from).and_then(|at| bytes.get_mut(at)) {
                        *byte = value;
                    }
                };
                forge(dir.path(), *part, |body, trailer| {
                    fits(0, body);
                    fits(body.len(), trailer);
                    if *part != Part::Terms && body.len() > format::HEADER_BYTES {
                        // one page, with its checksum
                        let (page, crc) = body[format::HEADER_BYTES..].split_last_chunk_mut::<4>().unwrap();
                        *crc = crc32c::crc32c(page).to_le_bytes();
                    }
                });
                // other postings may be well formed too; whatever comes, it comes as a result
                let _ = read(dir.path(), 0);
            }
        }
        std::fs::write(&path, good).unwrap();
    }
    check(dir.path(), "restored");
}

#[test]
fn forged_dictionary_entries_are_no_panic_and_no_large_allocation() {
    let dir = tempfile::tempdir().unwrap();
    let mut model = small();
    model.remove("title");
    write(dir.path(), 0, &model, 200).unwrap();
    let segment = open(dir.path(), 0).unwrap();
    let raw = segment.terms(&segment.fields()[0]).first_block(&mut Decoder::new().unwrap()).unwrap();
    let stats = segment.fields()[0].stats;
    let store = |raw: &[u8]| {
        forge(dir.path(), Part::Terms, |body, trailer| {
            body.truncate(format::HEADER_BYTES);
            body.extend_from_slice(raw);
            trailer.clear();
            trailer.extend_from_slice(b"\x04text");
            varint::put(trailer, (raw.len() as u64) << 1);
            varint::put(trailer, raw.len() as u64);
            varint::put(trailer, 0);
            trailer.extend_from_slice(&crc32c::crc32c(raw).to_le_bytes());
            for number in [0, stats.terms, stats.postings, stats.tokens, u64::from(stats.documents_with_tokens)] {
                varint::put(trailer, number);
            }
        });
    };
    store(&raw);
    assert_eq!(read(dir.path(), 0).unwrap(), model, "stored without compression it reads the same");
    let (mut errors, mut others) = (0, 0);
    for at in 0..raw.len() {
        for value in [0, 1, 2, 3, 0x20, 0x7e, 0x7f, 0x80, 0xff] {
            let mut raw = raw.clone();
            raw[at] = value;
            store(&raw);
            match read(dir.path(), 0) {
                Ok(_) => others += 1,
                Err(Error::Corrupt { .. }) => errors += 1,
                Err(other) => panic!("byte {at} as {value}: {other}"),
            }
        }
        store(&raw[..at]);
        assert!(at == 0 || read(dir.path(), 0).is_err(), "cut at {at}");
    }
    assert!(errors > others, "{errors} errors, {others} other answers");
}

#[test]
fn lengths_that_the_file_does_not_justify_are_refused_before_they_are_allocated() {
    let huge: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let catalog = |stored_head: &[u8], raw: &[u8], separator: &[u8]| {
        [&[4][..], b"text", stored_head, raw, separator, &[0; 4], &[0, 1, 1, 1, 1]].concat()
    };
    let cases = [
        catalog(huge, &[9], &[0]),
        catalog(&[3], huge, &[0]),
        catalog(&[2], &[1], huge),
        catalog(&[2], huge, &[0]),
        [huge, b"text"].concat(),
    ];
    for trailer in cases {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 0, &Model::new(), 1).unwrap();
        forge(dir.path(), Part::Terms, |body, old| {
            body.push(0);
            *old = trailer.clone();
        });
        assert!(matches!(read(dir.path(), 0), Err(Error::Corrupt { .. })), "{trailer:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0, &Model::new(), 1).unwrap();
    forge(dir.path(), Part::Postings, |_, trailer| *trailer = huge.to_vec());
    assert!(matches!(read(dir.path(), 0), Err(Error::Corrupt { .. })));
}
