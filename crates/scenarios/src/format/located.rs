//! Values that remember their line, and maps that keep their order.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, de};

/// A value and the line of the file that it begins on, from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// The line.
    pub line: u64,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            line: spanned.referenced.line(),
            value: spanned.value,
        })
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A map in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Ordered<T> {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&T> {
        let mut entries = self.0.iter();
        entries
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T: Clone> Ordered<T> {
    /// This map with the entries of another in the place of those with the same key.
    pub(crate) fn overlaid(&self, other: &Self) -> Self {
        let mut entries = self.0.clone();
        for (name, value) in &other.0 {
            match entries.iter_mut().find(|(known, _)| known == name) {
                Some((_, place)) => *place = value.clone(),
                None => entries.push((name.clone(), value.clone())),
            }
        }
        Self(entries)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Ordered<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("MapOf{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let values = generator.subschema_for::<T>();
        schemars::json_schema!({"type": "object", "additionalProperties": values})
    }
}

/// A value that may be written in a short form: a scalar or a list in the place of a map.
pub trait Short: Sized {
    /// What may stand here.
    const EXPECTED: &'static str;

    /// From a word or a text.
    fn from_text(text: &str) -> Option<Self> {
        let _ = text;
        None
    }

    /// From a whole number.
    fn from_number(number: u64) -> Option<Self> {
        let _ = number;
        None
    }

    /// From nothing.
    fn from_null() -> Option<Self> {
        None
    }

    /// From a list of texts.
    fn from_list(list: Vec<Located<String>>) -> Option<Self> {
        let _ = list;
        None
    }

    /// The JSON Schema of the short form.
    fn short_schema() -> serde_json::Value {
        serde_json::Value::Bool(false)
    }
}

/// A value that may be written in a short form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shorthand<T>(pub T);

impl<T> From<T> for Shorthand<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> std::ops::Deref for Shorthand<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Short + Deserialize<'de>> Deserialize<'de> for Shorthand<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        short_or_long::<T, T, D>(deserializer).map(Self)
    }
}

impl<T: Short + JsonSchema> JsonSchema for Shorthand<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("ShortOr{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let long = generator.subschema_for::<T>();
        schemars::json_schema!({"anyOf": [T::short_schema(), long]})
    }
}

/// Reads a value in its short form or, by `Long`, in its long one.
pub(crate) fn short_or_long<'de, T, Long, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Short + From<Long>,
    Long: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Forms<T, Long>(PhantomData<(T, Long)>);
    impl<'de, T: Short + From<Long>, Long: Deserialize<'de>> Visitor<'de> for Forms<T, Long> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(T::EXPECTED)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            T::from_text(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            let unexpected = de::Unexpected::Unsigned(number);
            T::from_number(number).ok_or_else(|| E::invalid_value(unexpected, &self))
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            let unexpected = de::Unexpected::Signed(number);
            let number = u64::try_from(number).ok();
            number
                .and_then(T::from_number)
                .ok_or_else(|| E::invalid_value(unexpected, &self))
        }

        fn visit_unit<E: de::Error>(self) -> Result<T, E> {
            T::from_null().ok_or_else(|| E::invalid_type(de::Unexpected::Unit, &self))
        }

        fn visit_none<E: de::Error>(self) -> Result<T, E> {
            self.visit_unit()
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
            deserializer.deserialize_any(self)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
            let list = Vec::deserialize(value::SeqAccessDeserializer::new(list))?;
            T::from_list(list)
                .ok_or_else(|| de::Error::invalid_type(de::Unexpected::Seq, &T::EXPECTED))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            Long::deserialize(value::MapAccessDeserializer::new(map)).map(T::from)
        }
    }
    deserializer.deserialize_any(Forms(PhantomData))
}
