//! How serde's events become values: no tree, no copy of what has no escapes.
use super::{Fields, MOST_FIELDS, Parser, Place};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

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

pub(super) struct Object<'p> {
    pub(super) parser: &'p mut Parser,
    pub(super) fields: &'p Fields,
    pub(super) text: &'p str,
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
