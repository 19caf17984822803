//! In which order the fields of a type are written.
//!
//! `schemars` keeps properties in a sorted map, and the order in which a model fills fields in
//! matters (reasons before verdicts). `serde` knows it: a derived `Deserialize` hands the names of a
//! struct's fields, in order, to its deserializer. So the type is deserialised from made-up values
//! by a deserializer that writes the names down. It is best effort: what `serde` reads through a
//! buffer (flattened, untagged and internally tagged types) does not show its fields.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// The field lists of the structs within a type, in the order in which they were met.
pub(super) type FieldLists = Vec<&'static [&'static str]>;

/// How often a type is walked. Each walk finds a field that cannot be made up, or a further variant.
const MAX_WALKS: usize = 256;

/// How many values are made up in all.
const MAX_STEPS: usize = 100_000;

/// How deep values are nested.
const MAX_DEPTH: usize = 48;

/// The field lists of a type and of all types within it, as far as they show.
pub(super) fn field_lists<T: DeserializeOwned>() -> FieldLists {
    let mut walk = Walk::default();
    for _ in 0..MAX_WALKS {
        walk.begin();
        // A hand-written `Deserialize` may panic on made-up values; then what was found stands.
        let probe = Probe {
            walk: &mut walk,
            depth: 0,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| T::deserialize(probe).is_ok()));
        if outcome.is_err() || !walk.found_more {
            break;
        }
    }
    walk.lists
}

/// A struct, variant or enum: its name, and the address of the list of its fields or variants.
type TypeKey = (&'static str, usize);

fn key_of(name: &'static str, list: &'static [&'static str]) -> TypeKey {
    (name, list.as_ptr() as usize)
}

#[derive(Default)]
struct Walk {
    lists: FieldLists,
    known: HashSet<TypeKey>,
    /// What is being walked, so that recursive types end.
    open: Vec<TypeKey>,
    /// Fields that could not be made up, or are recursive: left out from then on.
    left_out: HashSet<(TypeKey, usize)>,
    /// By enum: the next variant to try, and one that could be made up.
    variants: HashMap<TypeKey, (usize, Option<usize>)>,
    /// Whether this walk's failure was put down to something that the next walk does otherwise.
    blamed: bool,
    /// Whether another walk can find more.
    found_more: bool,
    steps: usize,
}

impl Walk {
    fn begin(&mut self) {
        self.open.clear();
        self.blamed = false;
        self.found_more = false;
    }

    fn blame(&mut self) {
        self.blamed = true;
        self.found_more = true;
    }
}

/// A deserializer that makes values up.
struct Probe<'a> {
    walk: &'a mut Walk,
    depth: usize,
}

impl<'a> Probe<'a> {
    /// A probe for what is within.
    fn inner(self) -> Result<Self, Error> {
        Probe::within(self.walk, self.depth)
    }

    fn within(walk: &'a mut Walk, depth: usize) -> Result<Self, Error> {
        walk.steps += 1;
        if depth >= MAX_DEPTH || walk.steps > MAX_STEPS {
            return Err(Error::custom("too deep or too much"));
        }
        Ok(Self {
            walk,
            depth: depth + 1,
        })
    }

    fn elements(self, left: usize) -> Elements<'a> {
        Elements {
            walk: self.walk,
            depth: self.depth,
            left,
        }
    }

    fn walk_struct<'de, V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let key = key_of(name, fields);
        if self.walk.open.contains(&key) {
            return Err(Error::custom("recursive"));
        }
        if self.walk.known.insert(key) {
            self.walk.lists.push(fields);
        }
        let opened = self.walk.open.len();
        self.walk.open.push(key);
        let value = visitor.visit_map(Fields {
            walk: &mut *self.walk,
            depth: self.depth,
            key,
            fields,
            next: 0,
        });
        self.walk.open.truncate(opened);
        value
    }

    fn walk_enum<'de, V: Visitor<'de>>(
        self,
        key: TypeKey,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (next, good) = *self.walk.variants.entry(key).or_default();
        let is_recursive = self.walk.open.contains(&key);
        let index = match good {
            Some(good) if is_recursive || next >= variants.len() => good,
            _ if is_recursive || next >= variants.len() => {
                return Err(Error::custom("no variant that can be made up"));
            }
            _ => next,
        };
        if index == next {
            self.walk.variants.insert(key, (next + 1, good));
        }
        let more = next + 1 < variants.len();
        self.walk.found_more |= more;
        let opened = self.walk.open.len();
        self.walk.open.push(key);
        let value = visitor.visit_enum(Variant {
            walk: &mut *self.walk,
            depth: self.depth,
            name: variants[index],
        });
        self.walk.open.truncate(opened);
        if value.is_ok() {
            self.walk
                .variants
                .entry(key)
                .or_default()
                .1
                .get_or_insert(index);
        } else if more && !self.walk.blamed {
            self.walk.blame();
        }
        value
    }
}

macro_rules! made_up {
    ($($method:ident: $visit:ident($value:expr),)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit($value)
        }
    )*};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.walk_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.walk_enum(key_of(name, variants), variants, visitor)
    }

    made_up! {
        deserialize_bool: visit_bool(false), deserialize_char: visit_char('a'),
        deserialize_i8: visit_i8(1), deserialize_i16: visit_i16(1), deserialize_i32: visit_i32(1),
        deserialize_i64: visit_i64(1), deserialize_i128: visit_i128(1),
        deserialize_u8: visit_u8(1), deserialize_u16: visit_u16(1), deserialize_u32: visit_u32(1),
        deserialize_u64: visit_u64(1), deserialize_u128: visit_u128(1),
        deserialize_f32: visit_f32(1.0), deserialize_f64: visit_f64(1.0),
        deserialize_str: visit_str("a"), deserialize_string: visit_str("a"),
        deserialize_identifier: visit_str("a"),
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self.inner()?)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self.inner()?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(self.elements(1))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(self.elements(len))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(self.elements(1))
    }

    forward_to_deserialize_any! { bytes byte_buf unit unit_struct ignored_any }
}

/// The fields of a struct, those aside that could not be made up before.
struct Fields<'a> {
    walk: &'a mut Walk,
    depth: usize,
    key: TypeKey,
    fields: &'static [&'static str],
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        while self.walk.left_out.contains(&(self.key, self.next)) {
            self.next += 1;
        }
        let Some(name) = self.fields.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let opened = self.walk.open.len();
        let value =
            Probe::within(&mut *self.walk, self.depth).and_then(|probe| seed.deserialize(probe));
        self.walk.open.truncate(opened);
        if value.is_err() && !self.walk.blamed {
            self.walk.left_out.insert((self.key, self.next - 1));
            self.walk.blame();
        }
        value
    }
}

/// So many elements of a list, or entries of a map.
struct Elements<'a> {
    walk: &'a mut Walk,
    depth: usize,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(Probe::within(&mut *self.walk, self.depth)?)
            .map(Some)
    }
}

impl<'de> MapAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(Probe::within(&mut *self.walk, self.depth)?)
    }
}

struct Variant<'a> {
    walk: &'a mut Walk,
    depth: usize,
    name: &'static str,
}

impl<'a, 'de> EnumAccess<'de> for Variant<'a> {
    type Error = Error;
    type Variant = Contents<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        let contents = Contents {
            probe: Probe {
                walk: self.walk,
                depth: self.depth,
            },
            name: self.name,
        };
        Ok((seed.deserialize(name)?, contents))
    }
}

/// What a variant holds.
struct Contents<'a> {
    probe: Probe<'a>,
    name: &'static str,
}

impl<'de> VariantAccess<'de> for Contents<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.probe.inner()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.probe.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.probe.walk_struct(self.name, fields, visitor)
    }
}
