//! What is pushed into a segment comes out of it, in every shape that the format treats differently.
use proptest::prelude::*;

use super::*;

#[test]
fn an_empty_segment_and_a_field_without_terms_read_back() {
    round_trip(&Model::new(), 0);
    round_trip(&[("".into(), BTreeMap::new()), ("user".into(), BTreeMap::new())].into(), 4000);
}

#[test]
fn a_term_that_occurs_once_takes_nothing_outside_the_dictionary() {
    let terms = (0..1000u32).map(|i| (format!("{i:08x}").into_bytes(), vec![(i, vec![i * 3])]));
    let model = one_field(terms);
    round_trip(&model, 1000);
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), 0, &model, 1000).unwrap();
    let empty = (format::HEADER_BYTES + 1 + format::FOOTER_BYTES) as u64;
    assert_eq!((files[1].bytes, files[2].bytes), (empty, empty));
}

#[test]
fn long_postings_and_many_positions_read_back() {
    let every_doc = (0..1000).map(|doc| (doc, vec![doc % 7, 9])).collect();
    let many_times = vec![(3, (0..1000).collect()), (4, vec![u32::MAX]), (999, (5..300).step_by(2).collect())];
    let exactly_a_block = (0..128).map(|doc| (doc, vec![0])).collect();
    let repeats_in_blocks = (0..256).map(|doc| (doc * 3, (0..=doc % 5).collect())).collect();
    let terms = [("a", every_doc), ("ab", many_times), ("abc", exactly_a_block), ("b", repeats_in_blocks)];
    round_trip(&one_field(terms.map(|(term, docs)| (term.into(), docs))), 1000);
}

#[test]
fn document_and_position_gaps_may_be_as_large_as_their_type() {
    let far = vec![(0, vec![0, u32::MAX]), (u32::MAX - 1, vec![u32::MAX])];
    let spread = (0..200).map(|i| (i * 21_474_000, vec![i, u32::MAX - i])).collect();
    round_trip(&one_field([(b"far".to_vec(), far), (b"spread".to_vec(), spread)]), u32::MAX);
}

#[test]
fn a_term_may_be_empty_or_longer_than_a_block_or_than_what_is_compressed() {
    let mut noise = 1u64;
    let mut random = |n: usize| -> Vec<u8> {
        let next = |_| {
            noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (noise >> 56) as u8
        };
        (0..n).map(next).collect()
    };
    let mut terms = vec![vec![], b"a".to_vec(), vec![b'b'; 300 << 10], vec![b'c'; 3 << 20]];
    terms.push([vec![b'c'; 3 << 20], b"x".to_vec()].concat());
    terms.extend([random(300 << 10), random(17 << 10), random(2 << 20), b"z".to_vec()]);
    round_trip(&one_field(terms.into_iter().map(|term| (term, vec![(1, vec![2])]))), 2);
}

#[test]
fn a_giant_term_does_not_keep_its_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = SegmentWriter::create(dir.path(), 0).unwrap();
    let before = writer.allocated_bytes();
    assert!(before < 300 << 10, "{before} bytes at the start");
    writer.begin_field("text").unwrap();
    let push = |writer: &mut SegmentWriter, term: &[u8]| {
        writer.begin_term(term).unwrap();
        writer.occurrence(0, 0).unwrap();
        writer.end_term().unwrap();
    };
    push(&mut writer, &vec![b'a'; 10 << 20]);
    assert!(writer.allocated_bytes() > 20 << 20, "the term and its copy for the block are counted");
    push(&mut writer, b"b");
    let after = writer.allocated_bytes();
    assert!(after < before + (100 << 10), "{after} bytes, {before} before");
}

#[test]
fn memory_does_not_grow_with_documents_terms_or_occurrences() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = SegmentWriter::create(dir.path(), 0).unwrap();
    writer.begin_field("text").unwrap();
    let mut most = 0;
    for i in 0..100_000u32 {
        writer.begin_term(format!("{i:08}").as_bytes()).unwrap();
        for doc in 0..if i % 1000 == 0 { 2000 } else { 1 } {
            writer.occurrence(doc, i).unwrap();
            writer.occurrence(doc, i + 1).unwrap();
        }
        writer.end_term().unwrap();
        most = most.max(writer.allocated_bytes());
    }
    assert!(most < 400 << 10, "{most}");
}

#[test]
fn the_same_pushes_give_the_same_bytes() {
    let terms = (0..3000u32).map(|i| (format!("{i:05}").into_bytes(), vec![(i, vec![1, 2]), (i + 1, vec![7])]));
    let model = one_field(terms);
    let bytes = || {
        let dir = tempfile::tempdir().unwrap();
        let files = write(dir.path(), 3, &model, 4000).unwrap();
        files.iter().map(|file| std::fs::read(dir.path().join(&file.name)).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(), bytes());
}

// The format is fixed: if this fails, either undo the change or raise FORMAT_VERSION. The terms do not compress, so that
// another version of ZSTD gives the same bytes.
#[test]
fn the_bytes_of_version_1_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let long = (0..300).map(|doc| (doc * 7, (0..1 + doc % 3).map(|i| doc + i * 1000).collect())).collect();
    let model = one_field([(b"k7".to_vec(), long), (b"zx".to_vec(), vec![(5, vec![8])])]);
    let files = write(dir.path(), 1, &model, 3000).unwrap();
    let sums: Vec<_> = files.iter().map(|file| (file.bytes, file.crc32c)).collect();
    assert_eq!(FORMAT_VERSION, 1);
    assert_eq!(sums, [(114, 3115400611), (316, 6093099), (898, 302094173)]);
}

#[test]
fn what_is_pushed_out_of_order_is_refused() {
    let refused = |push: &dyn Fn(&mut SegmentWriter) -> Result<()>, why: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = SegmentWriter::create(dir.path(), 0).unwrap();
        let error = push(&mut writer).expect_err(why).to_string();
        assert!(error.contains(why), "{error:?} should say {why:?}");
    };
    let term = |writer: &mut SegmentWriter, term: &str| -> Result<()> {
        writer.begin_term(term.as_bytes())?;
        writer.occurrence(5, 5)?;
        writer.end_term()
    };
    refused(&|w| w.begin_term(b"a"), "outside a field");
    refused(&|w| w.begin_field("b").and_then(|()| w.begin_field("c")), "before the last one");
    refused(
        &|w| [w.begin_field("b"), w.end_field(0).map(|_| ())].into_iter().chain([w.begin_field("b")]).collect(),
        "fields",
    );
    for (first, second) in [("b", "b"), ("b", "a"), ("ab", "a"), ("b", "")] {
        refused(&|w| [w.begin_field("x"), term(w, first), term(w, second)].into_iter().collect(), "ascend");
    }
    refused(&|w| [w.begin_field("x"), w.begin_term(b"a"), w.end_term()].into_iter().collect(), "without an occurrence");
    for (doc, position) in [(5, 5), (5, 4), (4, 6)] {
        let push = |w: &mut SegmentWriter| {
            [w.begin_field("x"), w.begin_term(b"a"), w.occurrence(5, 5), w.occurrence(doc, position)]
                .into_iter()
                .collect()
        };
        refused(&push, "have to ascend");
    }
    let dir = tempfile::tempdir().unwrap();
    let model = one_field([(b"a".to_vec(), vec![(5, vec![0])])]);
    assert!(write(dir.path(), 0, &model, 5).unwrap_err().to_string().contains("more documents"));
    assert!(SegmentWriter::create(dir.path(), 0).is_err(), "files that are there are not written over");
}

fn terms() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![Just("a"), Just("b"), Just("ab"), Just("é"), Just("prefix-that-is-shared-"), Just("\u{0}")];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat().into_bytes())
}

fn docs() -> impl Strategy<Value = Vec<(u32, Vec<u32>)>> {
    let positions = prop_oneof![
        8 => proptest::collection::btree_set(0..50u32, 1..4),
        1 => proptest::collection::btree_set(0..5000u32, 1..400),
        1 => proptest::collection::btree_set(any::<u32>(), 1..4),
    ];
    let positions = positions.prop_map(|set| set.into_iter().collect::<Vec<_>>());
    let doc = prop_oneof![8 => 0..400u32, 1 => 0..u32::MAX];
    let size = prop_oneof![8 => 1..5usize, 1 => 100..300usize];
    size.prop_flat_map(move |n| proptest::collection::vec((doc.clone(), positions.clone()), n))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_segment_reads_back_as_it_was_written(
        fields in proptest::collection::btree_map("[a-c]{0,2}", proptest::collection::vec((terms(), docs()), 0..20), 0..4)
    ) {
        let model: Model = fields
            .into_iter()
            .map(|(name, terms)| (name, one_field(terms).remove("text").expect("one field")))
            .collect();
        round_trip(&model, u32::MAX);
    }
}
