//! A JSON line as the string values of its top-level fields, without a tree.
//!
//! The line is decoded lossily, then parsed whole before anything of it counts: a line that fails adds neither a value nor
//! a field. Of duplicate keys the last one counts; a key whose value is not a string is no field. Values are kept as
//! ranges, of the line where it has no escapes in it, else of a buffer. Fields are numbered in order of appearance; as
//! lines tend to have the same keys in the same order, the number after the last one is tried before the table.
//! What the parser takes for a value with escapes besides is at most the line's length, which is charged while it runs.
use crate::accounting::Account;
use crate::input::tame::tame_numbers;
use serde::de::Deserializer;
use std::collections::HashMap;
use std::ops::Range;
use visit::Object;

mod visit;

#[cfg(test)]
mod tests;

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

/// What the parser says of a number beyond a float.
const OUT_OF_RANGE: &str = "number out of range";

/// Without the byte order mark that a file may begin with.
pub fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
}
