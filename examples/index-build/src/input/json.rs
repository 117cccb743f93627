//! A JSON line as the string values of its top-level fields, without a tree.
//!
//! The line is decoded lossily, then parsed whole before anything of it counts: a line that fails adds neither a value nor
//! a field. Of duplicate keys the last one counts; a key whose value is not a string is no field. Values are kept as
//! ranges, of the line where it has no escapes in it, else of a buffer. Fields are numbered in order of appearance; as
//! lines tend to have the same keys in the same order, the number after the last one is tried before the table.
//! What the parser takes for a value with escapes besides is at most the line's length, which is charged while it runs.
use crate::accounting::Account;
use crate::input::tame::tame_numbers;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// No index has more fields.
pub const MOST_FIELDS: usize = 1024;
/// What a field takes in lists and tables that double, but for its name.
const FIELD_BYTES: usize = 256;

/// Why a line cannot be indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bad {
    /// Not a JSON object; with `--skip-bad` it is skipped.
    Line(String),
    /// It would bring more than [`MOST_FIELDS`] fields.
    Fields,
    /// Not known yet: room for so many bytes is refused. It can be parsed again once there is.
    Room(usize),
}

/// The fields of a batch, numbered in order of appearance.
#[derive(Debug, Default)]
pub struct Fields {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    name_bytes: usize,
    /// only these, if any are given
    only: Option<Vec<String>>,
}

impl Fields {
    /// No fields yet; with `only`, no others will be.
    pub fn new(only: Option<Vec<String>>) -> Fields {
        Fields { only, ..Fields::default() }
    }

    /// Names by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What the names and their table take, about.
    pub fn allocated_bytes(&self) -> usize {
        let entry = size_of::<(String, u32)>() + 1;
        2 * self.name_bytes + self.names.capacity() * size_of::<String>() + self.numbers.capacity() * entry * 8 / 7
    }

    fn add(&mut self, name: String) -> u32 {
        let number = self.names.len() as u32;
        self.name_bytes += name.len();
        self.numbers.insert(name.clone(), number);
        self.names.push(name);
        number
    }

    /// The number of a key; the one after `last` is tried first.
    #[inline]
    fn number(&self, key: &str, last: usize) -> Option<u32> {
        if self.names.get(last).is_some_and(|name| name == key) {
            return Some(last as u32);
        }
        self.numbers.get(key).copied()
    }

    fn wanted(&self, key: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == key))
    }
}

/// Where a value's text is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Line(Range<usize>),
    Buffer(Range<usize>),
}

/// Parses lines; all of its buffers are used again.
#[derive(Debug, Default)]
pub struct Parser {
    /// by field number: the value in this line
    values: Vec<Option<Place>>,
    /// fields that no line before had, with their last value
    new: Vec<(String, Option<Place>)>,
    /// too many of those
    beyond: bool,
    /// values with escapes
    unescaped: String,
    /// the line, where it is not UTF-8
    lossy: String,
    is_lossy: bool,
    /// a key that may become a field
    key: String,
    charged: usize,
}

impl Parser {
    /// A parser without buffers.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Capacities of all buffers.
    pub fn allocated_bytes(&self) -> usize {
        self.values.capacity() * size_of::<Option<Place>>()
            + self.new.capacity() * size_of::<(String, Option<Place>)>()
            + self.unescaped.capacity()
            + self.lossy.capacity()
            + self.key.capacity()
    }

    /// Frees the buffers.
    pub fn release(self, account: &mut impl Account) {
        let charged = self.charged;
        drop(self);
        account.release(charged);
    }

    /// Charges what the buffers have become.
    fn settle(&mut self, account: &mut impl Account) {
        let now = self.allocated_bytes();
        if now > self.charged {
            account.charge(now - self.charged);
        } else {
            account.release(self.charged - now);
        }
        self.charged = now;
    }

    /// Parses a line. New fields are added to `fields` only if the whole line is good.
    pub fn parse<A: Account>(&mut self, line: &[u8], fields: &mut Fields, account: &mut A) -> Result<(), Bad> {
        self.values.iter_mut().for_each(|value| *value = None);
        self.new.clear();
        self.beyond = false;
        self.unescaped.clear();
        // buffers that a long line has left behind go when they are no longer needed
        for buffer in [&mut self.unescaped, &mut self.lossy, &mut self.key] {
            if buffer.capacity() > 64 << 10 && buffer.capacity() / 16 > line.len() {
                *buffer = String::new();
            }
        }
        let escapes = memchr::memchr(b'\\', line).is_some();
        let valid = std::str::from_utf8(line);
        self.is_lossy = valid.is_err();
        // said before it is taken: the decoded line, which may be three times as long, the values without their escapes,
        // and what the parser takes for one of them
        let lossy = if self.is_lossy { 3 * line.len() } else { 0 };
        let scratch = if escapes { line.len().max(lossy) } else { 0 };
        // nesting takes a byte a level of the parser's, which counts in a long line only
        let nesting = if line.len() > 64 << 10 { line.len() } else { 0 };
        let most = lossy + 2 * scratch + nesting;
        if A::HARD {
            // what buffers may grow by: they double; and a place for each key that may become a field
            let keys = memchr::memchr_iter(b':', line).count().min(MOST_FIELDS + 1);
            let entry = size_of::<(String, Option<Place>)>() + size_of::<Option<Place>>();
            let grown = 2 * (lossy + scratch + line.len()) + 2 * keys.max(4) * entry;
            if !account.room(most + grown) {
                return Err(Bad::Room(most + grown));
            }
        }
        account.charge(most);
        let parsed = match valid {
            Ok(text) => {
                self.unescaped.reserve(scratch);
                self.read(text, fields)
            }
            Err(_) => {
                let mut text = std::mem::take(&mut self.lossy);
                text.clear();
                for chunk in line.utf8_chunks() {
                    text.push_str(chunk.valid());
                    if !chunk.invalid().is_empty() {
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                }
                self.unescaped.reserve(scratch);
                let parsed = self.read(&text, fields);
                self.lossy = text;
                parsed
            }
        };
        self.settle(account);
        account.release(most);
        match parsed {
            Err(Bad::Line(why)) if why.contains(OUT_OF_RANGE) => self.parse_tamed(line, fields, account)?,
            parsed => parsed?,
        }
        let new = self.new.iter().filter(|(_, value)| value.is_some()).count();
        if self.beyond || fields.names.len() + new > MOST_FIELDS {
            return Err(Bad::Fields);
        }
        if new > 0 {
            let before = fields.allocated_bytes();
            let names: usize = self.new.iter().map(|(name, _)| name.len()).sum();
            let more = 2 * names + (fields.names.len() + new).max(4) * FIELD_BYTES;
            if !account.room(more) {
                return Err(Bad::Room(more));
            }
            for (name, value) in self.new.drain(..) {
                if value.is_some() {
                    let number = fields.add(name) as usize;
                    self.values.resize(self.values.len().max(number + 1), None);
                    self.values[number] = value;
                }
            }
            account.charge(fields.allocated_bytes() - before);
            self.settle(account);
        }
        Ok(())
    }

    /// Parses a line again that has a number beyond what a float can hold, which JSON allows and the parser does not:
    /// with smaller numbers in its place, as numbers are ignored.
    #[cold]
    fn parse_tamed(&mut self, line: &[u8], fields: &Fields, account: &mut impl Account) -> Result<(), Bad> {
        let most = 4 * line.len();
        let grown = if self.is_lossy { 6 * line.len() } else { 2 * line.len() };
        if !account.room(most + grown) {
            return Err(Bad::Room(most + grown));
        }
        account.charge(most);
        self.values.iter_mut().for_each(|value| *value = None);
        self.new.clear();
        self.beyond = false;
        self.unescaped.clear();
        let text =
            if self.is_lossy { std::mem::take(&mut self.lossy) } else { String::from_utf8_lossy(line).into_owned() };
        let tame = tame_numbers(&text);
        drop(text);
        let parsed = self.read(&tame, fields);
        self.lossy = tame;
        self.is_lossy = true;
        self.settle(account);
        account.release(most);
        parsed
    }

    fn read(&mut self, text: &str, fields: &Fields) -> Result<(), Bad> {
        let mut json = serde_json::Deserializer::from_str(text);
        (&mut json).deserialize_map(Object { parser: self, fields, text }).and_then(|()| json.end()).map_err(|error| {
            // the line that serde_json counts is ours by another number
            let said = error.to_string();
            let why = said.split(" at line ").next().unwrap_or_default();
            Bad::Line(format!("not a JSON object: {why}, column {}", error.column()))
        })
    }

    /// The values of the line just parsed, by field number.
    #[inline]
    pub fn values<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
        let text = if self.is_lossy { self.lossy.as_bytes() } else { line };
        self.values.iter().enumerate().filter_map(move |(number, value)| match value {
            Some(Place::Line(range)) => Some((number, &text[range.clone()])),
            Some(Place::Buffer(range)) => Some((number, &self.unescaped.as_bytes()[range.clone()])),
            None => None,
        })
    }
}

/// What a key turned out to be.
#[derive(Debug, Clone, Copy)]
enum Slot {
    /// a field that has a number
    Known(usize),
    /// new in this line, at this place
    New(usize),
    /// new, and kept only if its value is a string
    Fresh,
    /// not asked for
    Unwanted,
}

struct Object<'p> {
    parser: &'p mut Parser,
    fields: &'p Fields,
    text: &'p str,
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Object { parser, fields, text } = self;
        let mut next = 0;
        while let Some(slot) = map.next_key_seed(Key { parser, fields, next })? {
            if let Slot::Unwanted = slot {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let place = map.next_value_seed(Value { parser, text })?;
            match slot {
                Slot::Known(number) => {
                    if parser.values.len() <= number {
                        parser.values.resize(number + 1, None);
                    }
                    parser.values[number] = place;
                    next = number + 1;
                }
                Slot::New(at) => parser.new[at].1 = place,
                Slot::Fresh => {
                    if place.is_some() {
                        if parser.new.len() > MOST_FIELDS {
                            parser.beyond = true;
                        } else {
                            parser.new.push((std::mem::take(&mut parser.key), place));
                        }
                    }
                }
                Slot::Unwanted => {}
            }
        }
        Ok(())
    }
}

struct Key<'p> {
    parser: &'p mut Parser,
    fields: &'p Fields,
    next: usize,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Slot;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Slot, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key<'_> {
    type Value = Slot;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    #[inline]
    fn visit_str<E>(self, key: &str) -> Result<Slot, E> {
        if let Some(number) = self.fields.number(key, self.next) {
            return Ok(Slot::Known(number as usize));
        }
        if !self.fields.wanted(key) {
            return Ok(Slot::Unwanted);
        }
        if let Some(at) = self.parser.new.iter().position(|(name, _)| name == key) {
            return Ok(Slot::New(at));
        }
        self.parser.key.clear();
        self.parser.key.push_str(key);
        Ok(Slot::Fresh)
    }
}

struct Value<'p> {
    parser: &'p mut Parser,
    text: &'p str,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Option<Place>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<Place>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Option<Place>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    #[inline]
    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Option<Place>, E> {
        // it is a part of the text, so its place is the difference of two addresses
        let from = value.as_ptr().addr() - self.text.as_ptr().addr();
        Ok(Some(Place::Line(from..from + value.len())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Option<Place>, E> {
        let from = self.parser.unescaped.len();
        self.parser.unescaped.push_str(value);
        Ok(Some(Place::Buffer(from..from + value.len())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<Place>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<Place>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<Place>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<Place>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Place>, E> {
        Ok(None)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Option<Place>, S::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Option<Place>, M::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// What the parser says of a number beyond a float.
const OUT_OF_RANGE: &str = "number out of range";

/// Without the byte order mark that a file may begin with.
pub fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
}

#[cfg(test)]
mod tests {
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
                .map(|(number, value)| {
                    (self.fields.names()[number].clone(), String::from_utf8(value.to_vec()).unwrap())
                })
                .collect())
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
    }

    #[test]
    fn only_top_level_strings_are_fields() {
        let mut read = Read::new(None);
        let line =
            br#" {"a":"x y","n":1,"b":null,"c":{"d":"no"},"e":["no",[{}]],"f":-1.5e3,"g":true,"h":"\u00e9\n\"q"} "#;
        assert_eq!(read.line(line).unwrap(), pairs(&[("a", "x y"), ("h", "\u{e9}\n\"q")]));
        assert_eq!(read.fields.names(), ["a", "h"]);
        assert_eq!(read.line(b"{}\r").unwrap(), pairs(&[]));
        assert_eq!(
            read.line(br#"{"h":"","a":"1","\u0061b":"k"}"#).unwrap(),
            pairs(&[("a", "1"), ("h", ""), ("ab", "k")])
        );
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
}
