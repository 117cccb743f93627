//! Tantivy: one field with frequencies and positions, no norms, no stored text, lower case, no merging. One thread reads and
//! hands out documents, the others index; the commit syncs.
use crate::Outcome;
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{LowerCaser, SimpleTokenizer, TextAnalyzer};
use tantivy::{Index, TantivyDocument};

/// Its writer's memory for each thread: enough that a thread makes one segment of 200 MB.
const MEMORY_A_THREAD: usize = 1_000 << 20;

/// `INPUT THREADS INDEX`: builds, and prints what it came to as one JSON object.
pub(crate) fn build(words: &[String]) -> Outcome<()> {
    let [input, threads, folder] = words else { return Err("--child INPUT THREADS INDEX".to_owned()) };
    let threads: usize = threads.parse().map_err(|_| format!("{threads:?} is not a number"))?;
    let said = indexed(Path::new(input), threads, Path::new(folder)).map_err(|error| error.to_string())?;
    println!("{said}");
    Ok(())
}

fn indexed(input: &Path, threads: usize, folder: &Path) -> tantivy::Result<serde_json::Value> {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("plain")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let body = schema.add_text_field("body", TextOptions::default().set_indexing_options(indexing));
    fs::create_dir(folder)?;
    let index = Index::create_in_dir(folder, schema.build())?;
    let analyzer = TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).build();
    index.tokenizers().register("plain", analyzer);
    let bytes = fs::metadata(input)?.len();

    let start = Instant::now();
    let mut writer = index.writer_with_num_threads(threads, MEMORY_A_THREAD * threads)?;
    writer.set_merge_policy(Box::new(tantivy::merge_policy::NoMergePolicy));
    let mut reader = BufReader::with_capacity(1 << 20, File::open(input)?);
    let (mut line, mut documents) = (Vec::new(), 0u64);
    while reader.read_until(b'\n', &mut line)? > 0 {
        let mut document = TantivyDocument::default();
        document.add_text(body, String::from_utf8_lossy(&line));
        writer.add_document(document)?;
        documents += 1;
        line.clear();
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    let seconds = start.elapsed().as_secs_f64();

    let mut index_bytes = 0;
    for entry in fs::read_dir(folder)? {
        index_bytes += entry?.metadata()?.len();
    }
    Ok(json!({
        "documents": documents,
        "mb_per_s": bytes as f64 / 1e6 / seconds,
        "index_bytes": index_bytes,
        "segments": index.searchable_segment_ids()?.len(),
        "peak_resident_bytes": peak_resident_bytes(),
    }))
}

/// 0 where the system does not tell.
fn peak_resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}
