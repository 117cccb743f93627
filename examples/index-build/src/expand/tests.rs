//! The properties of an expanded file, checked with a tokenizer on decoded text that shares nothing with the one on bytes.
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Expands `text` in memory until `bytes`; the passes, cut apart, and what was reported.
fn passes(text: &[u8], bytes: u64, seed: u64) -> (Vec<Vec<u8>>, Expanded) {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.log");
    fs::write(&input, text).unwrap();
    let mut out = Vec::new();
    let done = expand_to(&input, bytes, seed, &AtomicI32::new(0), &mut |piece| {
        assert!(!piece.is_empty());
        out.extend_from_slice(piece);
        Ok(())
    })
    .unwrap();
    assert_eq!(done.bytes, out.len() as u64);
    let stride = text.len() + usize::from(text.last() != Some(&b'\n'));
    let passes: Vec<Vec<u8>> = out.chunks(stride).map(|pass| pass[..text.len()].to_vec()).collect();
    assert_eq!(done.passes, passes.len() as u64);
    (passes, done)
}

/// One later pass of `text`.
fn pass_one(text: &str) -> String {
    let (passes, _) = passes(text.as_bytes(), text.len() as u64 + 1, 7);
    assert_eq!(passes[0], text.as_bytes());
    String::from_utf8(passes[1].clone()).unwrap()
}

fn tokens(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.split(|c: char| !c.is_alphanumeric()).filter(|t| !t.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_first_pass_is_the_file_itself_and_all_passes_are_whole() {
    let text = b"req-12345 done\nplain words\nabc1234567";
    let (passes, done) = passes(text, 100, 1);
    assert_eq!(passes[0], text);
    assert!(passes.iter().all(|pass| pass.len() == text.len()));
    // 37 bytes and a joining line feed: 37, 75, 113
    assert_eq!(done, Expanded { passes: 3, bytes: 113, lines: 9 });
}

#[test]
fn it_stops_at_the_end_of_the_first_pass_that_reaches_the_size() {
    for (bytes, expected) in [(1, 1), (8, 1), (9, 2), (16, 2), (17, 3)] {
        assert_eq!(passes(b"a12345 \n", bytes, 1).1.passes, expected, "{bytes}");
    }
}

#[test]
fn a_line_feed_joins_passes_only_where_the_file_ends_without_one() {
    let (_, with) = passes(b"one\ntwo\n", 16, 1);
    assert_eq!(with, Expanded { passes: 2, bytes: 16, lines: 4 });
    let (_, without) = passes(b"one\ntwo", 15, 1);
    assert_eq!(without, Expanded { passes: 2, bytes: 15, lines: 4 });
}

#[test]
fn only_runs_of_five_characters_with_a_digit_are_replaced() {
    let text = "1234 abcd abcdefgh a1b2 (2024) x1-y2 12:34:56\n";
    assert_eq!(pass_one(text), text);
    for text in ["12345", "abcd1", "1abcd", "ABCD1", "a1b2c3d4e5f6", "req12345678"] {
        assert_ne!(pass_one(text), text);
    }
}

#[test]
fn characters_beyond_ascii_count_and_stay() {
    let changed = pass_one("жжжж1 ééé12 ٣٣٣٣٣ жжж1 1é2é3é4é5é6\n");
    let tokens = tokens(changed.as_bytes());
    assert!(tokens[0].starts_with("жжжж") && tokens[1].starts_with("ééé"));
    assert_eq!(tokens[2], "٣٣٣٣٣", "digits of other scripts are no digits here");
    assert_eq!(tokens[3], "жжж1", "four characters, though seven bytes");
    assert_ne!(tokens[4], "1é2é3é4é5é6");
}

#[test]
fn a_hexadecimal_run_stays_hexadecimal() {
    let text = "deadbeef01 DEADBEEF01 0123456789abcdef 9F8E7D6C\n".repeat(50);
    let changed = pass_one(&text);
    for (from, to) in tokens(text.as_bytes()).iter().zip(tokens(changed.as_bytes())) {
        assert!(to.bytes().all(|b| b.is_ascii_hexdigit()), "{from} became {to}");
        assert_eq!(from.bytes().any(|b| b.is_ascii_lowercase()), to.bytes().any(|b| b.is_ascii_lowercase()));
    }
    // mixed case, or any other letter, is no hexadecimal run: with 26 letters to choose from, one beyond f appears
    assert!(pass_one("dEADBEEFDEADBEEFDEADBEEF01").bytes().any(|b| b.to_ascii_lowercase() > b'f'));
}

#[test]
fn json_escapes_are_untouched_and_end_a_run() {
    for text in [r"\u0041\u1234\uabcd", r"\n1234", r"\u00e91234", r"\t\\n", r#"{"a\u12345": "\n\r\b\f\/\"1234"}"#] {
        assert_eq!(pass_one(text), text);
    }
    let changed = pass_one(r"\u00e912345 \\u12345");
    assert!(changed.starts_with(r"\u00e9") && !changed.ends_with("12345"), "{changed}");
}

#[test]
fn the_same_run_is_replaced_alike_within_a_pass_and_otherwise_in_the_next() {
    let text = b"id-a1b2c3d4e5f6 x a1b2c3d4e5f6\n\"a1b2c3d4e5f6\" 987654321 987654321";
    let (one, _) = passes(text, 400, 42);
    let mut seen = std::collections::BTreeSet::new();
    for pass in &one {
        let t = tokens(pass);
        assert!(t[1] == t[3] && t[1] == t[4] && t[5] == t[6]);
        assert!(seen.insert(t[1].clone()) && seen.insert(t[5].clone()));
    }
    assert_eq!(passes(text, 400, 42).0, one);
    let (other, _) = passes(text, 400, 43);
    assert_eq!(other[0], one[0]);
    assert_ne!(other[1], one[1]);
}

#[test]
fn the_replacement_does_not_change_between_versions() {
    // pinned: a script may keep the digest of an expanded file
    let changed = pass_one("nova-compute 25746 req-38101a0b-2096-447d-96ea-a692162415ae [Instance 0x1F]");
    assert_eq!(changed, "nova-compute 76539 req-20874c7d-2096-447d-96ea-a730476503ec [Instance 0x1F]");
}

#[test]
fn a_run_longer_than_what_is_read_at_once_is_one_run() {
    let long = "a1".repeat(CHUNK + 7);
    let text = format!("{long} middle {long}\nэ{}", "é9".repeat(CHUNK));
    let changed = pass_one(&text);
    let t = tokens(changed.as_bytes());
    assert_eq!(t.len(), 4);
    assert!(t[0] == t[2] && t[0] != long);
    assert_eq!(changed.len(), text.len());
}

#[test]
fn what_is_cut_by_the_end_of_a_read_is_not_lost() {
    // every alignment of a run, an escape and a wide character to the end of the first read
    for shift in 0..24 {
        let text = format!("{}{}\\u00e9x12345 ж12345ж\\n1234 z9z9z9", " ".repeat(CHUNK - 24), " ".repeat(shift));
        assert_eq!(pass_one(&text).trim_start(), pass_one(text.trim_start()), "shift {shift}");
    }
}

#[test]
fn an_empty_file_and_a_signal_end_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in"), dir.path().join("out"));
    let options = ExpandOptions { input: input.clone(), out, bytes: 1 << 30, seed: 1 };
    fs::write(&input, "").unwrap();
    let error = expand(&options, &AtomicU64::new(0), &AtomicI32::new(0)).unwrap_err();
    assert!(error.to_string().ends_with("in: an empty file cannot be expanded"), "{error}");
    fs::write(&input, "a12345\n").unwrap();
    let error = expand(&options, &AtomicU64::new(0), &AtomicI32::new(15)).unwrap_err();
    assert_eq!(error.exit_code(), 143);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the input is left");
}

#[test]
fn the_output_may_not_be_the_input_by_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in");
    fs::write(&input, "a12345\n").unwrap();
    let mut names = vec![input.clone(), dir.path().join(".").join("in")];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&input, dir.path().join("soft")).unwrap();
        fs::hard_link(&input, dir.path().join("hard")).unwrap();
        names.extend([dir.path().join("soft"), dir.path().join("hard")]);
    }
    for out in names {
        let options = ExpandOptions { input: input.clone(), out, bytes: 100, seed: 1 };
        let error = expand(&options, &AtomicU64::new(0), &AtomicI32::new(0)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert_eq!(fs::read(&input).unwrap(), b"a12345\n");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn terms_without_digits_occur_passes_times_as_often(
        text in "([a-zé]{1,8}|[A-F0-9]{1,9}|[a-z0-9]{3,9}|\\\\n|\\\\u00e9|\u{301}|ж|[ :\n\"-]){1,60}",
        noise in proptest::collection::vec(any::<u8>(), 0..6),
        seed in any::<u64>(),
    ) {
        let mut bytes = text.into_bytes();
        bytes.extend(noise);
        let (passes, done) = passes(&bytes, bytes.len() as u64 * 3, seed);
        let count = |pass: &[u8]| {
            let mut counts = BTreeMap::<String, u64>::new();
            for token in tokens(pass).into_iter().filter(|t| !t.bytes().any(|b| b.is_ascii_digit())) {
                *counts.entry(token).or_default() += 1;
            }
            counts
        };
        let first = count(&passes[0]);
        prop_assert!(done.passes >= 3);
        for pass in &passes {
            prop_assert_eq!(count(pass), first.clone());
            prop_assert_eq!(tokens(pass).len(), tokens(&passes[0]).len());
            for (from, to) in passes[0].iter().zip(pass) {
                prop_assert!(from == to
                    || (from.is_ascii_digit() && to.is_ascii_digit())
                    || (from.is_ascii_lowercase() && to.is_ascii_lowercase())
                    || (from.is_ascii_uppercase() && to.is_ascii_uppercase()));
            }
        }
    }
}
