//! Pages that are checked before a byte of them is handed out.
use super::content;
use plimsoll::spill::files::system;
use plimsoll::spill::read::{PageReader, Pages, Reader, Source, SourcedReader};
use plimsoll::spill::{SpillError, Uncounted};
use plimsoll::{GlobalMemoryLimiter, KIB, MIB, Refusal};
use std::path::Path;

const PAGE: usize = 4 * KIB;
/// In front of the first page.
const START: usize = 33;

/// A header, the payload in pages with their sums, and something after it.
fn paged(payload: &[u8], page_bytes: usize) -> Vec<u8> {
    let mut file = vec![0xaa; START];
    for page in payload.chunks(page_bytes) {
        file.extend_from_slice(page);
        file.extend_from_slice(&crc32c::crc32c(page).to_le_bytes());
    }
    let stored = Pages::<Reader>::stored_bytes(payload.len() as u64, page_bytes);
    assert_eq!(stored, Some((file.len() - START) as u64));
    file.extend_from_slice(b"trailer");
    file
}

fn pages_of(path: &Path, payload_bytes: usize, page_bytes: usize) -> Pages<Reader> {
    Pages::new(Reader::new(system(), path), START as u64, payload_bytes as u64, page_bytes).unwrap()
}

/// R4: boundaries, the partial last page, the end.
#[test]
fn any_range_is_read_right_across_pages_and_up_to_the_last_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    for page_bytes in [PAGE, 5_000, 64 * KIB] {
        for length in [0, 1, page_bytes - 1, page_bytes, page_bytes + 1, 3 * page_bytes, 5 * page_bytes + 17] {
            let payload = content(4, length);
            std::fs::write(&path, paged(&payload, page_bytes)).unwrap();
            let pages = pages_of(&path, length, page_bytes);
            assert_eq!(pages.payload_bytes(), length as u64);
            let mut kept = pages.reader(Uncounted);
            let edges = (0..=length / page_bytes + 1).map(|page| page * page_bytes);
            let edges: Vec<usize> =
                edges.flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1, edge + 700]).collect();
            for &from in &edges {
                for &to in edges.iter().filter(|&&to| from <= to) {
                    let mut one = vec![0x55; to - from];
                    let mut other = one.clone();
                    let [one_read, other_read] =
                        [kept.read_exact_at(&mut one, from as u64), pages.read_exact_at(&mut other, from as u64)];
                    if to <= length {
                        one_read.unwrap();
                        other_read.unwrap();
                        assert!(
                            one == payload[from..to] && other == one,
                            "{from} to {to} of {length}, {page_bytes} a page"
                        );
                    } else {
                        for error in [one_read.unwrap_err(), other_read.unwrap_err()] {
                            let SpillError::End { offset, asked_bytes, .. } = error else { panic!("{error}") };
                            assert_eq!((offset, asked_bytes), (from as u64, to - from));
                        }
                    }
                }
            }
            assert!(kept.allocated_bytes() <= page_bytes + 4);
            for far in [i64::MAX as u64, u64::MAX] {
                assert!(matches!(kept.read_exact_at(&mut [0; 2], far), Err(SpillError::End { .. })));
            }
        }
    }
}

#[test]
fn what_is_left_of_a_page_is_had_without_reading_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let payload = content(4, 2 * PAGE + 100);
    std::fs::write(&path, paged(&payload, PAGE)).unwrap();
    let faults = super::recorded();
    let reader = Reader::new(faults.files(), &path);
    let pages = Pages::new(&reader, START as u64, payload.len() as u64, PAGE).unwrap();
    let mut kept = pages.reader(Uncounted);
    for at in (0..PAGE).step_by(64) {
        assert_eq!(*kept.rest_of_page(at as u64).unwrap(), payload[at..PAGE]);
        let mut bytes = [0; 10];
        kept.read_exact_at(&mut bytes, at as u64).unwrap();
        assert_eq!(bytes, payload[at..at + 10]);
    }
    assert_eq!(faults.count("read"), 1);
    assert_eq!(*kept.rest_of_page(2 * PAGE as u64 + 99).unwrap(), payload[2 * PAGE + 99..]);
    assert_eq!((faults.count("read"), faults.count("open")), (2, 1));
    let error = kept.rest_of_page(payload.len() as u64).unwrap_err();
    assert!(matches!(error, SpillError::End { asked_bytes: 1, .. }), "{error}");
    // as many pages as fit with their sums in one call, the last one through the kept page
    let mut all = vec![0; 2 * PAGE];
    kept.read_exact_at(&mut all, 0).unwrap();
    assert!(all == payload[..2 * PAGE]);
    assert_eq!(faults.count("read"), 4);
}

/// Each byte that is changed, of payload and sum alike, is found, and the error says in which page.
#[test]
fn a_damaged_page_is_an_error_that_says_where_and_the_others_stay_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let payload = content(4, 3 * PAGE + 100);
    let right = paged(&payload, PAGE);
    let at = |page: usize| START + page * (PAGE + 4);
    for (page, place) in
        [(0, at(0)), (1, at(1) + 77), (1, at(2) - 4), (1, at(2) - 1), (3, at(3) + 99), (3, at(3) + 103)]
    {
        for bit in [0x01, 0x80] {
            let mut file = right.clone();
            file[place] ^= bit;
            std::fs::write(&path, &file).unwrap();
            let pages = pages_of(&path, payload.len(), PAGE);
            let mut kept = pages.reader(Uncounted);
            for number in 0..4 {
                let (from, to) = (number * PAGE, ((number + 1) * PAGE).min(payload.len()));
                for at_once in [to - from, 5] {
                    let mut bytes = vec![0; at_once];
                    match kept.read_exact_at(&mut bytes, from as u64) {
                        Ok(()) => assert!(number != page && bytes == payload[from..from + at_once]),
                        Err(error) => {
                            assert_eq!(number, page);
                            let text =
                                format!("{}, offset {}: page does not match its checksum", path.display(), at(page));
                            assert_eq!(error.to_string(), text);
                        }
                    }
                }
            }
            let mut all = vec![0; payload.len()];
            let error = kept.read_exact_at(&mut all, 0).unwrap_err();
            assert!(matches!(error, SpillError::Corrupt { offset, .. } if offset == at(page) as u64), "{error}");
            let mut out = b"before".to_vec();
            assert!(pages.append_at(&mut out, payload.len(), 0).is_err());
            assert_eq!(out, b"before");
        }
    }
}

/// A different page is damaged in each copy. Page by page everything is there; request by request it is not.
#[test]
fn pages_over_several_sources_are_made_good_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let payload = content(4, 4 * PAGE + 100);
    let copies = [0, 1, 3].map(|damaged: usize| {
        let path = folder.path().join(damaged.to_string());
        let mut file = paged(&payload, PAGE);
        file[START + damaged * (PAGE + 4) + 9] ^= 4;
        std::fs::write(&path, file).unwrap();
        path
    });
    let [a, b, c] = copies.each_ref().map(|path| Reader::new(system(), path));
    let pages = Pages::new(SourcedReader::new(a).or(b).or(c), START as u64, payload.len() as u64, PAGE).unwrap();
    let mut bytes = vec![0; payload.len()];
    pages.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes == payload);
    assert!(pages.source().failed(0).unwrap() > 0);
    let mut out = b"before".to_vec();
    pages.append_at(&mut out, payload.len(), 0).unwrap();
    assert!(out[6..] == payload);

    let [a, b, _] = copies.each_ref().map(|path| pages_of(path, payload.len(), PAGE));
    let whole = SourcedReader::new(a).or(b);
    let error = whole.read_exact_at(&mut bytes, 0).unwrap_err();
    let SpillError::Sources { sources: 2, first } = &error else { panic!("{error}") };
    assert!(
        matches!(**first, SpillError::Corrupt { offset, .. } if offset == START as u64),
        "the first error: {first}"
    );
    whole.read_exact_at(&mut bytes[..100], 10).unwrap();
    assert_eq!((&bytes[..100], whole.failed(1)), (&payload[10..110], Some(1)), "a request of one page is made good");
}

#[test]
fn a_page_is_charged_while_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let payload = content(4, 100 * KIB);
    std::fs::write(&path, paged(&payload, 64 * KIB)).unwrap();
    let builder = GlobalMemoryLimiter::builder().budget_bytes(100 * KIB).floor_bytes(KIB).hard_limit_bytes(100 * KIB);
    let limiter = builder.writer_cap_bytes(16 * MIB).build().unwrap();
    let reporter = limiter.reporter("reader");
    let pages = pages_of(&path, payload.len(), 64 * KIB);
    let mut one = pages.reader(&reporter);
    assert_eq!((one.allocated_bytes(), reporter.held_bytes()), (0, 0));
    // the short page first: what the buffer has is what is charged, at each size
    for at in [64 * KIB, 0, 64 * KIB, 0] {
        assert_eq!(*one.rest_of_page(at as u64).unwrap().first().unwrap(), payload[at]);
        assert_eq!(reporter.held_bytes(), one.allocated_bytes());
    }
    assert_eq!(one.allocated_bytes(), 64 * KIB + 4);
    let mut other = pages.reader(&reporter);
    let error = other.rest_of_page(0).unwrap_err();
    let SpillError::Memory(refused) = &error else { panic!("{error}") };
    assert_eq!((refused.kind, refused.asked_bytes), (Refusal::HardLimit, 64 * KIB + 4));
    assert_eq!((other.allocated_bytes(), reporter.held_bytes()), (0, 64 * KIB + 4), "nothing is left of it");
    drop(one);
    other.rest_of_page(0).unwrap();
    drop(other);
    assert_eq!((reporter.held_bytes(), limiter.held_bytes(), limiter.stats().accounting_errors), (0, 0, 0));
}

#[test]
fn a_failed_page_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let payload = content(4, 2 * PAGE);
    let right = paged(&payload, PAGE);
    let mut wrong = right.clone();
    wrong[START + PAGE + 4] ^= 1;
    std::fs::write(&path, wrong).unwrap();
    let pages = pages_of(&path, payload.len(), PAGE);
    let mut kept: PageReader<'_, Reader> = pages.reader(Uncounted);
    kept.rest_of_page(0).unwrap();
    assert!(kept.rest_of_page(PAGE as u64).is_err() && kept.rest_of_page(PAGE as u64).is_err());
    assert_eq!(*kept.rest_of_page(0).unwrap(), payload[..PAGE], "what it held before it does not hold any more");
    assert!(kept.rest_of_page(PAGE as u64).is_err());
    std::fs::write(&path, right).unwrap();
    assert_eq!(*kept.rest_of_page(PAGE as u64).unwrap(), payload[PAGE..]);
    assert_eq!(*kept.rest_of_page(1).unwrap(), payload[1..PAGE]);
}

/// What a hostile file says of its pages is an error, and never an allocation beyond one page.
#[test]
fn impossible_pages_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    std::fs::write(&path, paged(&content(4, 100), PAGE)).unwrap();
    let reader = Reader::new(system(), &path);
    for (start, payload, page, text) in [
        (7, 10, PAGE - 1, "offset 7: pages of 4095 bytes, they have 4096 to 65536"),
        (7, 10, 64 * KIB + 1, "offset 7: pages of 65537 bytes, they have 4096 to 65536"),
        (7, 10, 0, "offset 7: pages of 0 bytes, they have 4096 to 65536"),
        (7, u64::MAX, PAGE, "offset 7: 18446744073709551615 bytes in pages, no file is so long"),
        (7, i64::MAX as u64, PAGE, "offset 7: 9223372036854775807 bytes in pages, no file is so long"),
        (u64::MAX, 1, PAGE, "offset 18446744073709551615: 1 bytes in pages, no file is so long"),
    ] {
        let error = Pages::new(&reader, start, payload, page).unwrap_err();
        assert_eq!(error.to_string(), format!("{}, {text}", path.display()));
    }
    assert_eq!(reader.opens(), 0);
    let pages = Pages::new(&reader, START as u64, 1 << 60, 64 * KIB).unwrap();
    let mut kept = pages.reader(Uncounted);
    for at in [0, 1 << 20, 1 << 59] {
        let error = kept.rest_of_page(at).unwrap_err();
        assert!(matches!(error, SpillError::End { .. }), "{error}");
        assert!(kept.allocated_bytes() <= 64 * KIB + 4);
    }
    let stored = Pages::<Reader>::stored_bytes;
    assert_eq!(
        [stored(0, PAGE), stored(1, PAGE), stored(4_097, PAGE), stored(1, 0)],
        [Some(0), Some(5), Some(4_105), None]
    );
}
