//! From a schema document to a plain schema, if it is one: strict, so that what passes here is a schema
//! that the full validator compiles.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{PlainSchema, Rule, type_bit};

impl PlainSchema {
    /// The plain form of a document that is valid JSON Schema 2020-12, holds nothing but keywords that
    /// are known here, and refers to its own `$defs` alone. Of other documents: nothing.
    pub(in super::super) fn read(document: &Value) -> Option<Self> {
        let mut reader = Reader::default();
        reader.read_object(document.as_object()?, true)?;
        for (at, target) in reader.references {
            let target = match target {
                Target::Definition(name) => *reader.definitions.get(name)?,
                Target::Root => 0,
            };
            reader.schemas[at].push(Rule::All(vec![target]));
        }
        Some(Self {
            schemas: reader.schemas,
        })
    }
}

#[derive(Default)]
struct Reader<'a> {
    schemas: Vec<Vec<Rule>>,
    /// The root's `$defs`.
    definitions: HashMap<&'a str, usize>,
    /// Which schema refers to what.
    references: Vec<(usize, Target<'a>)>,
}

enum Target<'a> {
    Root,
    Definition(&'a str),
}

impl<'a> Reader<'a> {
    fn read(&mut self, schema: &'a Value) -> Option<usize> {
        let rules = match schema {
            Value::Object(object) => return self.read_object(object, false),
            Value::Bool(true) => Vec::new(),
            Value::Bool(false) => vec![Rule::Nothing],
            _ => return None,
        };
        self.schemas.push(rules);
        Some(self.schemas.len() - 1)
    }

    fn read_object(&mut self, object: &'a Map<String, Value>, is_root: bool) -> Option<usize> {
        let at = self.schemas.len();
        self.schemas.push(Vec::new());
        for (keyword, value) in object {
            let rule = match keyword.as_str() {
                "title" | "description" | "format" | "$comment" if value.is_string() => continue,
                "deprecated" | "readOnly" | "writeOnly" if value.is_boolean() => continue,
                "examples" if value.is_array() => continue,
                "default" => continue,
                "$schema" if is_root => continue,
                "$defs" if is_root => {
                    for (name, schema) in value.as_object()? {
                        let definition = self.read(schema)?;
                        self.definitions.insert(name, definition);
                    }
                    continue;
                }
                "$ref" => {
                    self.references.push((at, reference(value)?));
                    continue;
                }
                // Read with the properties.
                "additionalProperties" if object.contains_key("properties") => continue,
                "properties" | "additionalProperties" => self.properties(object)?,
                "type" => Rule::Types(types(value)?),
                "enum" => Rule::Values(scalars(value.as_array()?)?),
                "const" => Rule::Values(scalars(std::slice::from_ref(value))?),
                "allOf" => Rule::All(self.several(value)?),
                "anyOf" => Rule::Any(self.several(value)?),
                "oneOf" => Rule::One(self.several(value)?),
                "required" => Rule::Required(distinct(value)?),
                "items" => Rule::Items(self.read(value)?),
                "minimum" => Rule::Limit(value.as_number()?.clone(), Ordering::is_ge),
                "maximum" => Rule::Limit(value.as_number()?.clone(), Ordering::is_le),
                "exclusiveMinimum" => Rule::Limit(value.as_number()?.clone(), Ordering::is_gt),
                "exclusiveMaximum" => Rule::Limit(value.as_number()?.clone(), Ordering::is_lt),
                "minLength" => Rule::Length(value.as_u64()?..=u64::MAX),
                "maxLength" => Rule::Length(0..=value.as_u64()?),
                "minItems" => Rule::Count(value.as_u64()?..=u64::MAX),
                "maxItems" => Rule::Count(0..=value.as_u64()?),
                _ => return None,
            };
            self.schemas[at].push(rule);
        }
        Some(at)
    }

    fn properties(&mut self, object: &'a Map<String, Value>) -> Option<Rule> {
        let mut known = Vec::new();
        if let Some(properties) = object.get("properties") {
            for (name, schema) in properties.as_object()? {
                known.push((name.clone(), self.read(schema)?));
            }
        }
        let others = match object.get("additionalProperties") {
            Some(schema) => Some(self.read(schema)?),
            None => None,
        };
        Some(Rule::Properties { known, others })
    }

    fn several(&mut self, value: &'a Value) -> Option<Vec<usize>> {
        let schemas = value.as_array().filter(|schemas| !schemas.is_empty())?;
        schemas.iter().map(|schema| self.read(schema)).collect()
    }
}

fn reference(value: &Value) -> Option<Target<'_>> {
    let reference = value.as_str()?;
    if reference == "#" {
        return Some(Target::Root);
    }
    let name = reference.strip_prefix("#/$defs/")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_name = name.bytes().all(is_plain);
    is_name.then_some(Target::Definition(name))
}

fn types(value: &Value) -> Option<u8> {
    if let Some(name) = value.as_str() {
        return type_bit(name);
    }
    let names = distinct(value).filter(|names| !names.is_empty())?;
    names
        .iter()
        .try_fold(0, |types, name| Some(types | type_bit(name)?))
}

/// Values that can be compared at a glance.
fn scalars(values: &[Value]) -> Option<Vec<Value>> {
    let is_scalar = |value: &Value| !value.is_array() && !value.is_object();
    values.iter().all(is_scalar).then(|| values.to_vec())
}

/// A list of texts of which none stands there twice.
fn distinct(value: &Value) -> Option<Vec<String>> {
    let names: Option<Vec<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
    let mut sorted = names?;
    sorted.sort_unstable();
    let is_distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
    is_distinct.then(|| sorted.into_iter().map(str::to_owned).collect())
}
