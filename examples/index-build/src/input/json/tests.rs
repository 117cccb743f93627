//! Lines, good and bad, and what they leave.
use super::*;
use crate::accounting::Charge;
use proptest::prelude::*;

#[derive(Default)]
struct Count(usize);
impl Charge for Count {
    fn charge(&mut self, bytes: usize) {
        self.0 += bytes;
    }
    fn release(&mut self, bytes: usize) {
        self.0 = self.0.checked_sub(bytes).expect("no more is released than was charged");
    }
}

impl Account for Count {
    fn term_begins(&mut self) {}
    fn term_ends(&mut self) {}
}

struct Read {
    parser: Parser,
    fields: Fields,
    count: Count,
}

impl Read {
    fn new(only: Option<Vec<String>>) -> Read {
        Read { parser: Parser::new(), fields: Fields::new(only), count: Count::default() }
    }

    /// (field, value) of a line
    fn line(&mut self, line: &[u8]) -> Result<Vec<(String, String)>, Bad> {
        let parsed = self.parser.parse(line, &mut self.fields, &mut self.count);
        assert_eq!(self.count.0, self.parser.allocated_bytes() + self.fields.allocated_bytes());
        parsed?;
        let values = self.parser.values(line);
        Ok(values
            .map(|(number, value)| (self.fields.names()[number].clone(), String::from_utf8(value.to_vec()).unwrap()))
            .collect())
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
}

#[test]
fn only_top_level_strings_are_fields() {
    let mut read = Read::new(None);
    let line = br#" {"a":"x y","n":1,"b":null,"c":{"d":"no"},"e":["no",[{}]],"f":-1.5e3,"g":true,"h":"\u00e9\n\"q"} "#;
    assert_eq!(read.line(line).unwrap(), pairs(&[("a", "x y"), ("h", "\u{e9}\n\"q")]));
    assert_eq!(read.fields.names(), ["a", "h"]);
    assert_eq!(read.line(b"{}\r").unwrap(), pairs(&[]));
    assert_eq!(read.line(br#"{"h":"","a":"1","\u0061b":"k"}"#).unwrap(), pairs(&[("a", "1"), ("h", ""), ("ab", "k")]));
}

#[test]
fn of_duplicate_keys_the_last_one_counts() {
    let mut read = Read::new(None);
    assert_eq!(read.line(br#"{"a":"1","a":"2","b":"x","b":3}"#).unwrap(), pairs(&[("a", "2")]));
    assert_eq!(read.fields.names(), ["a"], "a key whose value is not a string in the end is no field");
    assert_eq!(read.line(br#"{"a":"1","a":2,"b":3,"b":"y"}"#).unwrap(), pairs(&[("b", "y")]));
}

#[test]
fn a_line_that_fails_leaves_nothing_behind() {
    let mut read = Read::new(None);
    for line in [
        &b""[..],
        b"  ",
        b"{\"new\":\"x\"",
        b"{\"new\":\"x\"} {}",
        b"[\"new\"]",
        b"\"new\"",
        b"{\"new\":\"\\ud800\"}",
        b"{\"new\":\"\x01\"}",
    ] {
        assert!(matches!(read.line(line), Err(Bad::Line(_))), "{line:?}");
        assert!(read.fields.names().is_empty());
    }
    let Err(Bad::Line(why)) = read.line(b"{\"a\":}") else { panic!() };
    assert_eq!(why, "not a JSON object: expected value, column 6");
    assert_eq!(read.line(b"{\"a\":\"1\"}").unwrap(), pairs(&[("a", "1")]));
}

#[test]
fn invalid_utf_8_is_decoded_lossily_before_it_is_parsed() {
    let mut read = Read::new(None);
    assert_eq!(
        read.line(b"{\"a\":\"x\xFFy\",\"b\":\"\\n\xE2\x82\"}").unwrap(),
        pairs(&[("a", "x\u{FFFD}y"), ("b", "\n\u{FFFD}")])
    );
    assert_eq!(read.line(b"{\"a\":\"z\"}").unwrap(), pairs(&[("a", "z")]));
}

#[test]
fn only_the_fields_that_are_asked_for_count() {
    let mut read = Read::new(Some(vec!["b".to_owned()]));
    assert_eq!(read.line(br#"{"a":"1","b":"2","c":[1e999]}"#).unwrap(), pairs(&[("b", "2")]));
    assert_eq!(read.fields.names(), ["b"]);
}

#[test]
fn the_line_that_brings_too_many_fields_is_an_error_and_adds_none() {
    let mut read = Read::new(None);
    let object = |from: usize, to: usize| {
        let keys: Vec<String> = (from..to).map(|number| format!("\"f{number}\":\"v\"")).collect();
        format!("{{{}}}", keys.join(",")).into_bytes()
    };
    assert_eq!(read.line(&object(0, 3000)), Err(Bad::Fields));
    assert_eq!(read.line(&object(0, 1025)), Err(Bad::Fields));
    assert!(read.fields.names().is_empty());
    assert_eq!(read.line(&object(0, 1024)).unwrap().len(), 1024);
    assert_eq!(read.line(&object(1000, 1025)), Err(Bad::Fields));
    assert_eq!(read.line(&object(1000, 1024)).unwrap().len(), 24);
    assert_eq!(read.fields.names().len(), 1024);
}

#[test]
fn a_number_beyond_a_float_is_ignored_like_any_other() {
    let huge = "9".repeat(400);
    for number in ["1e999", "-2.5E+999", &huge, &format!("{huge}.{huge}e-{huge}")] {
        let line = format!("{{\"a\":\"1e999 \\\"2e999\",\"n\":{number},\"m\":[{number}],\"b\":\"x\"}}");
        let mut read = Read::new(None);
        assert_eq!(read.line(line.as_bytes()).unwrap(), pairs(&[("a", "1e999 \"2e999"), ("b", "x")]), "{number}");
        assert_eq!(read.line(b"{\"a\":\"y\"}").unwrap(), pairs(&[("a", "y")]));
    }
    for number in ["1e999e9", "01e999", "1e999x", "1e", "1e+", "1.e999", "1e999 2"] {
        let line = format!("{{\"a\":\"x\",\"l\":1e999,\"n\":{number}}}");
        assert!(matches!(Read::new(None).line(line.as_bytes()), Err(Bad::Line(_))), "{number}");
    }
}

#[test]
fn deep_nesting_is_ignored_without_a_limit() {
    let line = format!("{{\"a\":{}{},\"b\":\"x\"}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Read::new(None).line(line.as_bytes()).unwrap(), pairs(&[("b", "x")]));
}

proptest! {
    #[test]
    fn values_are_those_of_a_json_parser(
        objects in proptest::collection::vec(proptest::collection::vec(("[ab\"\u{e9}]{0,3}", "[\\PC\n\\\\\"\u{0}]{0,20}", 0u8..4), 0..6), 1..6)
    ) {
        let mut read = Read::new(None);
        for object in objects {
            let text: Vec<String> = object.iter().map(|(key, value, kind)| {
                let key = serde_json::to_string(key).unwrap();
                let value = serde_json::to_string(value).unwrap();
                match kind { 0 => format!("{key}:[{value}]"), 1 => format!("{key} : 12"), _ => format!("{key}: {value}") }
            }).collect();
            let line = format!("{{{}}}", text.join(","));
            let tree: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
            let mut plain: Vec<(String, String)> = tree.iter()
                .filter_map(|(key, value)| value.as_str().map(|value| (key.clone(), value.to_owned()))).collect();
            let mut found = read.line(line.as_bytes()).unwrap();
            plain.sort();
            found.sort();
            prop_assert_eq!(found, plain);
        }
    }
}
