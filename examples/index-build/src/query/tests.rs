//! Questions to small indexes of several segments, against a plain scan.
use super::testing::{Document, build, text_index};
use super::*;
use crate::error::Error;
use crate::manifest::{FILE_NAME, Kind};

const LINES: [&str; 8] = ["a b a b a", "", "B, a! c", "the ζ Σ İx end", "a", "c-a-b c", "a\tb\r", "x x x x"];

fn ask(dir: &tempfile::TempDir, query: Query) -> (u64, Option<u64>, Vec<u64>) {
    let answer = Index::open(dir.path()).unwrap().query(None, &query, 100).unwrap();
    assert_eq!(answer.documents, 8);
    (answer.df, answer.occurrences, answer.ids)
}

#[test]
fn every_kind_of_question_is_answered_over_any_cut_into_segments() {
    let term = |text: &str| Query::Term(text.into());
    let phrase = |text: &str| Query::Phrase(text.into());
    let and = |text: &str| Query::And(text.into());
    let or = |text: &str| Query::Or(text.into());
    for per_segment in [1, 2, 3, 8] {
        let dir = text_index(&LINES, per_segment);
        let cases: [(Query, u64, Option<u64>, &[u64]); 22] = [
            (term("a"), 5, Some(7), &[0, 2, 4, 5, 6]),
            (term("A"), 0, Some(0), &[]),
            (term("a b"), 0, Some(0), &[]),
            (term(""), 0, Some(0), &[]),
            (term("σ"), 1, Some(1), &[3]),
            (term("ix"), 1, Some(1), &[3]),
            (phrase("A"), 5, Some(7), &[0, 2, 4, 5, 6]),
            (phrase("Σ"), 1, Some(1), &[3]),
            (phrase("a b"), 3, Some(4), &[0, 5, 6]),
            (phrase("A -- B!"), 3, Some(4), &[0, 5, 6]),
            (phrase("b a"), 2, Some(3), &[0, 2]),
            (phrase("a b a"), 1, Some(2), &[0]),
            (phrase("a b a b a"), 1, Some(1), &[0]),
            (phrase("a b a b a b"), 0, Some(0), &[]),
            (phrase("x x"), 1, Some(3), &[7]),
            (phrase("x x x x x"), 0, Some(0), &[]),
            (phrase("a absent"), 0, Some(0), &[]),
            (and("a,c"), 2, None, &[2, 5]),
            (and("C,a,A"), 2, None, &[2, 5]),
            (and("a,absent"), 0, None, &[]),
            (or("c,x,absent"), 3, None, &[2, 5, 7]),
            (or("end,a"), 6, None, &[0, 2, 3, 4, 5, 6]),
        ];
        for (query, df, occurrences, ids) in cases {
            let what = format!("{query:?}, {per_segment} a segment");
            assert_eq!(ask(&dir, query), (df, occurrences, ids.to_vec()), "{what}");
        }
        assert_eq!(distinct_terms(dir.path()).unwrap(), 9);
    }
}

#[test]
fn only_as_many_ids_are_given_as_were_asked_for() {
    let dir = text_index(&LINES, 3);
    let index = Index::open(dir.path()).unwrap();
    for query in [Query::Term("a".into()), Query::Phrase("a".into()), Query::Or("a,absent".into())] {
        for (limit, ids) in [(0, &[][..]), (2, &[0, 2]), (4, &[0, 2, 4, 5])] {
            let answer = index.query(None, &query, limit).unwrap();
            assert_eq!((answer.df, answer.ids.as_slice()), (5, ids), "{query:?}");
        }
    }
}

#[test]
fn a_phrase_may_have_more_words_than_readers_go_abreast() {
    let words: Vec<String> = (0..60).map(|i| format!("w{}", i % 40)).collect();
    let line = words.join(" ");
    let broken = line.replace("w17", "other");
    let twice = format!("{line} {line}");
    let lines = [line.as_str(), &broken, &twice, "", &line, "", "", ""];
    for per_segment in [1, 3, 8] {
        let dir = text_index(&lines, per_segment);
        for n in [15, 16, 17, 18, 40, 60] {
            let phrase = Query::Phrase(words[..n].join(" "));
            // the first 15, 16, 17 words come back within a line, at word 40
            let in_line = if n <= 20 { 2 } else { 1 };
            let broken = u64::from(n <= 17) * in_line;
            let (df, occurrences, _) = ask(&dir, phrase);
            assert_eq!(occurrences, Some(4 * in_line + broken), "{n} words");
            assert_eq!(df, 3 + u64::from(broken > 0), "{n} words");
        }
    }
}

#[test]
fn the_same_word_at_many_positions_is_skipped_through_right() {
    // one long document of a frequent word, many blocks of 128 positions, the phrase only at the end; and many documents
    let long = format!("{}needle end", "hay ".repeat(1000));
    let mut lines: Vec<&str> = vec![&long];
    lines.extend(std::iter::repeat_n("hay hay needle", 300));
    lines.push("needle hay");
    let dir = text_index(&lines, 400);
    let index = Index::open(dir.path()).unwrap();
    let count = |text: &str| {
        let answer = index.query(None, &Query::Phrase(text.into()), 1).unwrap();
        (answer.df, answer.occurrences, answer.ids.first().copied())
    };
    assert_eq!(count("hay needle"), (301, Some(301), Some(0)));
    assert_eq!(count("hay hay"), (301, Some(999 + 300), Some(0)));
    assert_eq!(count("needle end"), (1, Some(1), Some(0)));
    assert_eq!(count("needle hay"), (1, Some(1), Some(301)));
}

fn fields_index() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let document = |pairs: &[(&str, &str)]| -> Document {
        pairs.iter().map(|(field, text)| (field.to_string(), text.to_string())).collect()
    };
    let documents = [
        document(&[("../path", "one two"), ("user", "-")]),
        document(&[("../path", "two"), ("late", "three two")]),
        document(&[("late", "two"), ("user", "")]),
    ];
    build(dir.path(), Kind::Jsonl, &documents, 1, b"");
    dir
}

#[test]
fn an_index_of_several_fields_wants_one_and_lists_them() {
    let dir = fields_index();
    let index = Index::open(dir.path()).unwrap();
    let two = Query::Term("two".into());
    for asked in [None, Some("nowhere"), Some("text")] {
        let Err(Error::Usage(text)) = index.query(asked, &two, 0) else { panic!("{asked:?} is a usage error") };
        assert!(text.contains("\"../path\", \"late\", \"user\""), "{text}");
    }
    let ids = |field: &str| index.query(Some(field), &two, 9).unwrap().ids;
    assert_eq!((ids("../path"), ids("late"), ids("user")), (vec![0, 1], vec![1, 2], vec![]));
    assert_eq!(index.distinct_terms(|_| {}).unwrap(), 4);
}

#[test]
fn a_question_without_a_word_is_a_usage_error() {
    let dir = text_index(&LINES, 4);
    let index = Index::open(dir.path()).unwrap();
    for query in [Query::Phrase("--".into()), Query::And(String::new()), Query::Or(", ,".into())] {
        assert!(matches!(index.query(None, &query, 0), Err(Error::Usage(_))), "{query:?}");
    }
}

#[test]
fn an_empty_index_answers_with_nothing() {
    for kind in [Kind::Text, Kind::Jsonl] {
        let dir = tempfile::tempdir().unwrap();
        build(dir.path(), kind, &[], 1, b"");
        let index = Index::open(dir.path()).unwrap();
        let answer = index.query(None, &Query::Term("a".into()), 5).unwrap();
        assert_eq!(answer, Answer { occurrences: Some(0), ..Answer::default() });
        assert_eq!(index.query(None, &Query::Or("a".into()), 5).unwrap(), Answer::default());
        assert_eq!(index.distinct_terms(|_| {}).unwrap(), 0);
    }
}

/// How many files of the index this process has open.
#[cfg(target_os = "linux")]
fn open_files(dir: &tempfile::TempDir) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let target = std::fs::read_link(entry.unwrap().path()).ok()?;
        target.starts_with(dir.path()).then_some(())
    });
    open.count()
}

/// 400 documents, each a segment of its own.
fn many_segments() -> tempfile::TempDir {
    let lines: Vec<String> = (0..400).map(|i| format!("shared shared w{i}")).collect();
    text_index(&lines.iter().map(String::as_str).collect::<Vec<_>>(), 1)
}

fn ask_many(index: &Index) {
    assert_eq!(index.query(None, &Query::Term("shared".into()), 0).unwrap().df, 400);
    assert_eq!(index.query(None, &Query::Phrase("shared w7".into()), 1).unwrap().ids, [7]);
    assert_eq!(index.distinct_terms(|_| {}).unwrap(), 401);
}

// B44: an index of more segments than a process may open files for is read all the same.
#[test]
fn many_segments_need_few_open_files() {
    let dir = many_segments();
    for most in [1, 7, 512] {
        let index = Index::open_with(dir.path(), most).unwrap();
        ask_many(&index);
        #[cfg(target_os = "linux")]
        assert_eq!(open_files(&dir), most);
        assert!(index.opens() > 1_200, "their files take turns");
    }
    ask_many(&Index::open(dir.path()).unwrap());
    #[cfg(target_os = "linux")]
    assert_eq!(open_files(&dir), 0, "an index that is dropped closes its files");
}

/// Within the limit a file is opened once, when the index is opened, and no read opens one.
#[test]
fn a_read_opens_no_file() {
    let dir = many_segments();
    let index = Index::open_with(dir.path(), 1_200).unwrap();
    assert_eq!(index.opens(), 1_200);
    ask_many(&index);
    std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| ask_many(&index))));
    });
    assert_eq!(index.opens(), 1_200);
}

// B54: a manifest that names files which are gone or changed is an error that names the file.
#[test]
fn an_index_that_is_not_what_its_manifest_says_is_refused() {
    let refused = |change: &dyn Fn(&std::path::Path), file: &str| {
        let dir = text_index(&LINES, 4);
        change(dir.path());
        let error = Index::open(dir.path()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(file), "{error} should name {file}");
        assert_eq!(error.exit_code(), 1);
    };
    refused(&|dir| std::fs::remove_file(dir.join("seg-000001.pos")).unwrap(), "seg-000001.pos");
    refused(&|dir| std::fs::remove_file(dir.join(FILE_NAME)).unwrap(), FILE_NAME);
    refused(&|dir| std::fs::write(dir.join(FILE_NAME), b"").unwrap(), FILE_NAME);
    refused(&|dir| std::fs::write(dir.join("seg-000000.post"), b"").unwrap(), "seg-000000.post");
    let rewrite = |dir: &std::path::Path, change: &dyn Fn(&mut crate::manifest::Manifest)| {
        let mut manifest = crate::manifest::Manifest::read(dir).unwrap();
        change(&mut manifest);
        std::fs::write(dir.join(FILE_NAME), manifest.to_bytes()).unwrap();
    };
    refused(&|dir| rewrite(dir, &|m| m.segments[1].files[0].bytes += 1), "seg-000001.terms");
    refused(&|dir| rewrite(dir, &|m| m.tokens += 1), FILE_NAME);
    refused(
        &|dir| {
            rewrite(dir, &|m| {
                m.segments[1].documents += 1;
                m.documents += 1;
            })
        },
        "seg-000001.terms",
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_question_is_answered_as_a_plain_scan_answers_it(
        lines in proptest::collection::vec(proptest::collection::vec("[a-c]", 0..15), 1..12),
        asked in proptest::collection::vec("[a-d]", 1..5),
        per_segment in 1..13usize,
    ) {
        let text: Vec<String> = lines.iter().map(|words| words.join("-")).collect();
        let dir = text_index(&text.iter().map(String::as_str).collect::<Vec<_>>(), per_segment);
        let index = Index::open(dir.path()).unwrap();
        let matching = |holds: &dyn Fn(&[String]) -> bool| -> Vec<u64> {
            (0..).zip(&lines).filter(|(_, words)| holds(words)).map(|(doc, _)| doc).collect()
        };
        let count = |words: &[String]| words.windows(asked.len()).filter(|window| *window == asked).count() as u64;
        let answer = index.query(None, &Query::Phrase(asked.join(" ")), 99).unwrap();
        assert_eq!(answer.occurrences, Some(lines.iter().map(|words| count(words)).sum()));
        assert_eq!(answer.ids, matching(&|words| count(words) > 0));
        assert_eq!(answer.df, answer.ids.len() as u64);
        let and = index.query(None, &Query::And(asked.join(",")), 99).unwrap();
        assert_eq!(and.ids, matching(&|words| asked.iter().all(|word| words.contains(word))));
        let or = index.query(None, &Query::Or(asked.join(",")), 99).unwrap();
        assert_eq!(or.ids, matching(&|words| asked.iter().any(|word| words.contains(word))));
    }
}
