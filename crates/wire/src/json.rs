//! JSON whose objects keep the order of their keys, for what must not be re-sorted or lost: unusual
//! frames, error bodies, argument objects, schemas.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use crate::scanner::escaped_unit;

/// A JSON value. Of repeated keys the last one counts.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Json>),
    /// Members in their order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text that must be one JSON value.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Reads a text in which strings may hold raw control characters and halves of surrogate pairs.
    pub fn parse_repaired(text: &str) -> serde_json::Result<Self> {
        match Self::parse(text) {
            Ok(value) => Ok(value),
            Err(error) => match repair(text) {
                Cow::Owned(repaired) => Self::parse(&repaired),
                Cow::Borrowed(_) => Err(error),
            },
        }
    }

    /// The member of an object.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        let found = members.iter().rev().find(|(name, _)| name == key)?;
        Some(&found.1)
    }

    /// The member of an object, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Self::Object(members) = self else {
            return None;
        };
        let found = members.iter_mut().rev().find(|(name, _)| name == key)?;
        Some(&mut found.1)
    }

    /// The member, unless it is null.
    pub fn present(&self, key: &str) -> Option<&Self> {
        self.get(key).filter(|value| !matches!(value, Self::Null))
    }

    /// The member if it says anything: not null, false, or empty.
    pub fn filled(&self, key: &str) -> Option<&Self> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// Whether it says nothing: null, false, an empty text, list or object.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) => true,
            Self::Bool(true) | Self::Number(_) => false,
            Self::String(text) => text.is_empty(),
            Self::Array(items) => items.is_empty(),
            Self::Object(members) => members.is_empty(),
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The text of a member that is a string, or the digits of one that is a number.
    pub fn scalar_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::String(text) => Some(Cow::Borrowed(text)),
            Self::Number(number) => Some(Cow::Owned(number.to_string())),
            Self::Bool(flag) => Some(Cow::Borrowed(if *flag { "true" } else { "false" })),
            _ => None,
        }
    }

    /// A count: a whole number, also as floating point or as text.
    pub fn as_count(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Self::String(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| whole(text.parse().ok()?))
            }
            _ => None,
        }
    }

    /// The value as JSON text, without white space.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The value in `serde_json`'s form.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.clone()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, value)| (key.clone(), value.to_value()))
                    .collect(),
            ),
        }
    }

    /// Sets a member of an object, in place if it is there.
    pub fn set(&mut self, key: &str, value: Self) {
        let Self::Object(members) = self else { return };
        match members.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => members.push((key.to_owned(), value)),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be whole and in range"
)]
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number))
        .then_some(number as u64)
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::String(text.clone()),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|(key, value)| (key.clone(), Self::from(value)))
                    .collect(),
            ),
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    sequence.serialize_element(item)?;
                }
                sequence.end()
            }
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Json::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(member) = members.next_entry()? {
            all.push(member);
        }
        Ok(Json::Object(all))
    }
}

/// Makes a text readable that only a lenient parser reads: raw control characters inside strings are
/// escaped, halves of surrogate pairs become U+FFFD.
pub fn repair(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut repaired = String::new();
    let mut kept = 0;
    let mut in_string = false;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let (length, replacement) = match byte {
            b'"' => {
                in_string = !in_string;
                (1, None)
            }
            b'\\' if in_string => match surrogate(bytes, at) {
                Some(Surrogate::Pair) => (12, None),
                Some(Surrogate::Lone) => (6, Some(String::from("\\ufffd"))),
                None => (2, None),
            },
            0..=0x1f if in_string => (1, Some(format!("\\u{byte:04x}"))),
            _ => (1, None),
        };
        if let Some(replacement) = replacement {
            repaired.push_str(&text[kept..at]);
            repaired.push_str(&replacement);
            kept = at + length;
        }
        at += length;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(&text[kept..]);
    Cow::Owned(repaired)
}

enum Surrogate {
    Pair,
    Lone,
}

fn surrogate(bytes: &[u8], at: usize) -> Option<Surrogate> {
    match escaped_unit(bytes, at)? {
        0xd800..=0xdbff => match escaped_unit(bytes, at + 6) {
            Some(0xdc00..=0xdfff) => Some(Surrogate::Pair),
            _ => Some(Surrogate::Lone),
        },
        0xdc00..=0xdfff => Some(Surrogate::Lone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, repair};

    #[test]
    fn order_of_keys_and_large_integers_survive() {
        let text = r#"{"z":9007199254740993,"a":[1,-2,{"y":null,"b":true}]}"#;
        assert_eq!(Json::parse(text).unwrap().to_text(), text);
    }

    #[test]
    fn of_repeated_keys_the_last_counts() {
        let value = Json::parse(r#"{"a":1,"a":"two"}"#).unwrap();
        assert_eq!(value.get("a").unwrap().as_str(), Some("two"));
    }

    #[test]
    fn repairs_control_characters_and_lone_surrogates_only() {
        for (broken, repaired) in [
            ("{\"a\":\"x\ty\"}", r#"{"a":"x\u0009y"}"#),
            (r#"{"a":"\ud83c"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\udf89b"}"#, r#"{"a":"\ufffdb"}"#),
            (r#"{"a":"\ud83c\udf89"}"#, r#"{"a":"\ud83c\udf89"}"#),
            (r#"{"a":"\\ud83c"}"#, r#"{"a":"\\ud83c"}"#),
            ("{\n\"a\": \"\\\"\"}", "{\n\"a\": \"\\\"\"}"),
        ] {
            assert_eq!(repair(broken), repaired);
        }
    }

    #[test]
    fn counts_come_as_floats_and_texts_too() {
        let value = Json::parse(r#"[10.0,"7",-1,1.5]"#).unwrap();
        let counts: Vec<_> = value
            .as_array()
            .unwrap()
            .iter()
            .map(Json::as_count)
            .collect();
        assert_eq!(counts, [Some(10), Some(7), None, None]);
    }
}
