//! Results for readers: small aligned tables. Sizes are powers of two, counts are grouped, rates are 10^6 bytes a second
//! as in the JSON.
use super::size::{grouped, human};
use crate::compare::{Comparison, Spread};
use crate::explained::Explained;
use crate::inspect::Inspected;
use crate::manifest::Kind;
use crate::query::Answer;
use crate::report::BuildReport;
use crate::verify::Verified;

/// Rows of cells in columns: the first column to the left, the others to the right or, with `left`, all to the left.
pub(super) fn aligned(rows: &[Vec<String>], left: bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = widths[column].saturating_sub(cell.chars().count());
            let before = if column == 0 || left { 0 } else { pad };
            line.push_str(if column == 0 { "  " } else { "   " });
            line.extend(std::iter::repeat_n(' ', before));
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', pad - before));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Names and what belongs to them.
pub(super) fn pairs(rows: &[(&str, String)]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
    aligned(&rows, true)
}

/// A finished build.
pub(super) fn build(report: &BuildReport) -> String {
    let mut documents = grouped(report.documents);
    if report.skipped_documents > 0 {
        documents += &format!(", {} lines skipped", grouped(report.skipped_documents));
    }
    let mut rows = vec![
        ("documents", documents),
        ("tokens", format!("{}, {} postings", grouped(report.tokens), grouped(report.postings))),
        ("distinct terms", grouped(report.distinct_terms)),
        ("input", human(report.input_bytes)),
        ("index", format!("{}, {}", human(report.index_bytes), many(report.segments, "segment"))),
        (
            "time",
            format!(
                "{:.2} s, {:.1} MB/s, {}; user {:.2} s, system {:.2} s",
                report.seconds,
                report.mb_per_s,
                many(report.threads as u64, "thread"),
                report.user_seconds,
                report.sys_seconds
            ),
        ),
    ];
    if let (Some(peak), Some(mean)) = (report.peak_held_bytes, report.mean_held_bytes) {
        let budget =
            report.budget_bytes.map_or("no budget".to_owned(), |bytes| format!("budget {}", human(bytes as u64)));
        let other = [("hard limit", report.hard_limit_bytes), ("floor", report.floor_bytes)];
        let other =
            other.map(|(name, bytes)| bytes.map_or(String::new(), |bytes| format!(", {name} {}", human(bytes as u64))));
        let held = format!("peak {}, mean {}; {budget}{}", human(peak as u64), human(mean as u64), other.concat());
        rows.push(("held", held));
    }
    rows.push((
        "resident",
        format!("peak {}, {} at start", human(report.peak_resident_bytes), human(report.start_resident_bytes)),
    ));
    rows.push((
        "spills",
        format!(
            "{} forced, {} own; {}, {}",
            grouped(report.forced_spills),
            grouped(report.own_spills),
            many(report.runs, "run"),
            human(report.spilled_bytes)
        ),
    ));
    if report.spill_ram_bytes > 0 {
        rows.push(("spilled to memory", human(report.spill_ram_bytes)));
    }
    rows.push(("syncs", format!("{}, {:.2} s", grouped(report.syncs), report.sync_seconds)));
    rows.push((
        "accounting",
        format!(
            "{}: {}, {}, {}, {}",
            report.accounting,
            many(report.publishes, "publish"),
            many(report.notifications, "notification"),
            many(report.decisions, "decision"),
            many(report.shortfall_episodes, "shortfall episode")
        ),
    ));
    if report.peak_held_bytes.is_some() {
        rows.push((
            "at the end",
            format!(
                "{} held, {} published, {}",
                human(report.held_at_end_bytes as u64),
                human(report.published_at_end_bytes as u64),
                many(report.accounting_errors, "accounting error")
            ),
        ));
    }
    rows.push(("index sha256", report.index_sha256.clone()));
    pairs(&rows)
}

/// What a question came to.
pub(super) fn query(answer: &Answer) -> String {
    let mut rows = vec![("documents", format!("{} of {}", grouped(answer.df), grouped(answer.documents)))];
    rows.extend(answer.occurrences.map(|occurrences| ("occurrences", grouped(occurrences))));
    if !answer.ids.is_empty() {
        let ids: Vec<String> = answer.ids.iter().map(u64::to_string).collect();
        rows.push(("ids", ids.join(" ")));
    }
    pairs(&rows)
}

/// What a comparison with a truth came to.
pub(super) fn verify(verified: &Verified) -> String {
    let mut rows =
        vec![("checked", grouped(verified.checked)), ("differences", grouped(verified.differences.len() as u64))];
    rows.extend(verified.differences.iter().map(|difference| ("", difference.clone())));
    rows.extend(verified.skipped.iter().map(|skipped| ("skipped", skipped.clone())));
    pairs(&rows)
}

/// What an index consists of.
pub(super) fn inspect(index: &Inspected) -> String {
    let kind = match index.kind {
        Kind::Text => "text",
        Kind::Jsonl => "JSON lines",
    };
    let mut documents = grouped(index.documents);
    if index.skipped_documents > 0 {
        documents += &format!(", {} lines skipped", grouped(index.skipped_documents));
    }
    let bytes = &index.bytes;
    let mut out = pairs(&[
        ("format version", format!("{}, {kind}", index.format_version)),
        ("segments", format!("{}, batches of {}", grouped(index.segments), human(index.batch_bytes))),
        ("documents", documents),
        ("distinct terms", format!("{}, {}", grouped(index.terms), many(index.dictionary_entries, "dictionary entry"))),
        ("tokens", format!("{}, {}", grouped(index.tokens), many(index.postings, "posting"))),
        ("input", human(index.input_bytes)),
        ("input sha256", index.input_sha256.clone()),
        ("index", human(bytes.total)),
        ("  dictionaries", human(bytes.terms)),
        ("  postings", human(bytes.postings)),
        ("  positions", human(bytes.positions)),
        ("  manifest", human(bytes.manifest)),
    ]);
    let mut rows =
        vec![["field", "entries", "tokens", "postings", "documents with tokens"].map(str::to_owned).to_vec()];
    rows.extend(index.fields.iter().map(|field| {
        // a field's name is any string: shown so that it keeps to its line
        let mut row = vec![field.name.escape_debug().to_string()];
        let counts = [field.dictionary_entries, field.tokens, field.postings, field.documents_with_tokens];
        row.extend(counts.map(grouped));
        row
    }));
    out.push('\n');
    out.push_str(&aligned(&rows, false));
    if let Some(explained) = &index.explain {
        out.push('\n');
        out.push_str(&explain(explained));
    }
    out
}

/// Why writers were asked to spill: a head, and a line for each decision that is known.
pub(super) fn explain(explained: &Explained) -> String {
    let known = explained.decisions.len() as u64;
    let mut out = match explained.total {
        0 => "no decision asked for a spill".to_owned(),
        total => format!("{} asked for spills, or began a shortfall", many(total, "decision")),
    };
    if known < explained.total {
        out += &format!("; the last {}", grouped(known));
    }
    out.push('\n');
    for decision in &explained.decisions {
        let at = decision.at_ms.map_or(String::new(), |ms| format!(" at {}.{:03} s", ms / 1000, ms % 1000));
        // names are anything, and the file may have been changed: each keeps to its line
        let text = decision.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        out += &format!("  {}{at}: {text}\n", decision.number);
    }
    out
}

/// A count with its noun.
pub(super) fn many(count: u64, noun: &str) -> String {
    let count_text = grouped(count);
    match noun.strip_suffix('y') {
        _ if count == 1 => format!("{count_text} {noun}"),
        Some(stem) => format!("{count_text} {stem}ies"),
        None if noun.ends_with('h') => format!("{count_text} {noun}es"),
        None => format!("{count_text} {noun}s"),
    }
}

/// What accounting costs.
pub(super) fn compare(comparison: &Comparison) -> String {
    let head = [
        "threads",
        "accounting",
        "MB/s",
        "user s",
        "system s",
        "voluntary",
        "involuntary",
        "publishes",
        "notifications",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for row in &comparison.rows {
        let switches = |spread: &Option<Spread>| spread.as_ref().map_or("-".to_owned(), |spread| spread.text(0));
        rows.push(vec![
            row.threads.to_string(),
            row.accounting.to_owned(),
            row.mb_per_s.text(1),
            row.user_seconds.text(2),
            row.sys_seconds.text(2),
            switches(&row.voluntary_switches),
            switches(&row.involuntary_switches),
            grouped(row.publishes),
            grouped(row.notifications),
        ]);
    }
    aligned(&rows, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explained::Explanation;

    #[test]
    fn columns_line_up_and_no_line_ends_in_blanks() {
        let rows =
            [vec!["a".to_owned(), "1".to_owned()], vec!["bcé".to_owned(), "1,000".to_owned()], vec!["d".to_owned()]];
        assert_eq!(aligned(&rows, false), "  a         1\n  bcé   1,000\n  d\n");
        assert_eq!(aligned(&rows, true), "  a     1\n  bcé   1,000\n  d\n");
        assert_eq!(aligned(&[], true), "");
    }

    #[test]
    fn decisions_are_a_line_each_and_say_how_many_there_were() {
        let decision =
            |number, at_ms, text: &str| Explanation { number, at_ms, text: text.into(), ..Default::default() };
        let explained =
            Explained { total: 1066, decisions: vec![decision(1065, Some(12_007), "a\nb"), decision(1066, None, "c")] };
        assert_eq!(
            explain(&explained),
            "1,066 decisions asked for spills, or began a shortfall; the last 2\n  1065 at 12.007 s: a b\n  1066: c\n"
        );
        assert_eq!(explain(&Explained::default()), "no decision asked for a spill\n");
    }

    #[test]
    fn nouns_follow_their_count() {
        assert_eq!(many(1, "run"), "1 run");
        assert_eq!(many(0, "run"), "0 runs");
        assert_eq!(many(1200, "publish"), "1,200 publishes");
        assert_eq!(many(2, "entry"), "2 entries");
    }
}
