//! A check of arguments against plain schemas, such as typed tools have, that is small in memory and
//! quick. It decides only that arguments fit: all others are looked at by the full validator, which is
//! compiled no sooner, and which words the faults.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use serde_json::{Number, Value};

mod read;

/// A schema of which every keyword is known here. The root is the first.
#[derive(Debug)]
pub(super) struct PlainSchema {
    schemas: Vec<Vec<Rule>>,
}

/// One thing that a schema asks for.
#[derive(Debug)]
enum Rule {
    /// The schema `false`.
    Nothing,
    /// `type`: the bits of what is allowed.
    Types(u8),
    /// `enum` and `const`: one of these, of which none holds others.
    Values(Vec<Value>),
    /// `$ref` and `allOf`.
    All(Vec<usize>),
    /// `anyOf`.
    Any(Vec<usize>),
    /// `oneOf`.
    One(Vec<usize>),
    Required(Vec<String>),
    /// `properties` and `additionalProperties`.
    Properties {
        known: Vec<(String, usize)>,
        others: Option<usize>,
    },
    Items(usize),
    /// `minimum` and its like: how a number must stand to this one.
    Limit(Number, fn(Ordering) -> bool),
    /// `minLength` and `maxLength`, in code points.
    Length(RangeInclusive<u64>),
    /// `minItems` and `maxItems`.
    Count(RangeInclusive<u64>),
}

/// What is known of a value and a schema. The lowest decides of what must hold together, the highest of
/// what may hold instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Broken,
    /// It takes the full validator: floats that may be integers, for one.
    Unsure,
    Fits,
}

impl From<bool> for Verdict {
    fn from(fits: bool) -> Self {
        if fits { Self::Fits } else { Self::Broken }
    }
}

impl PlainSchema {
    /// Whether a value fits. The work is that of telling faults, for which arguments are admitted.
    pub(super) fn check(&self, value: &Value) -> Verdict {
        self.check_at(0, value)
    }

    fn check_at(&self, schema: usize, value: &Value) -> Verdict {
        let rules = self.schemas[schema].iter();
        all(rules.map(|rule| self.obeys(rule, value)))
    }

    fn obeys(&self, rule: &Rule, value: &Value) -> Verdict {
        let at = |schema: &usize| self.check_at(*schema, value);
        match (rule, value) {
            (Rule::Nothing, _) => Verdict::Broken,
            (Rule::Types(types), _) => is_of(*types, value),
            (Rule::Values(values), _) => is_one_of(values, value),
            (Rule::All(schemas), _) => all(schemas.iter().map(at)),
            (Rule::Any(schemas), _) => schemas.iter().map(at).max().unwrap_or(Verdict::Broken),
            (Rule::One(schemas), _) => one(schemas.iter().map(at)),
            (Rule::Required(names), Value::Object(object)) => {
                names.iter().all(|name| object.contains_key(name)).into()
            }
            (Rule::Properties { known, others }, Value::Object(object)) => {
                all(object.iter().map(|(name, value)| {
                    let known = known.iter().find(|(property, _)| property == name);
                    let schema = known.map(|(_, schema)| *schema).or(*others);
                    schema.map_or(Verdict::Fits, |schema| self.check_at(schema, value))
                }))
            }
            (Rule::Items(schema), Value::Array(items)) => {
                all(items.iter().map(|item| self.check_at(*schema, item)))
            }
            (Rule::Limit(limit, holds), Value::Number(number)) => {
                compare(number, limit).map_or(Verdict::Unsure, |order| holds(order).into())
            }
            (Rule::Length(range), Value::String(text)) => {
                range.contains(&(text.chars().count() as u64)).into()
            }
            (Rule::Count(range), Value::Array(items)) => {
                range.contains(&(items.len() as u64)).into()
            }
            // Rules for values of another type.
            _ => Verdict::Fits,
        }
    }
}

/// The bit of a type's name.
fn type_bit(name: &str) -> Option<u8> {
    const NAMES: [&str; 7] = [
        "null", "boolean", "string", "array", "object", "number", "integer",
    ];
    let place = NAMES.iter().position(|known| *known == name)?;
    Some(1 << place)
}

const NUMBER: u8 = 1 << 5;
const INTEGER: u8 = 1 << 6;

fn is_of(types: u8, value: &Value) -> Verdict {
    let Value::Number(number) = value else {
        let bit = type_bit(super::type_name(value)).unwrap_or(0);
        return (types & bit != 0).into();
    };
    if types & NUMBER != 0 {
        Verdict::Fits
    } else if types & INTEGER == 0 {
        Verdict::Broken
    } else if number.is_i64() || number.is_u64() {
        Verdict::Fits
    } else {
        Verdict::Unsure
    }
}

/// Numbers that are written otherwise may be equal all the same.
fn is_one_of(values: &[Value], value: &Value) -> Verdict {
    if values.contains(value) {
        Verdict::Fits
    } else if value.is_number() && values.iter().any(Value::is_number) {
        Verdict::Unsure
    } else {
        Verdict::Broken
    }
}

/// The order of two numbers, where it can be told exactly without effort.
fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    let integer = |number: &Number| {
        let signed = number.as_i64().map(i128::from);
        signed.or_else(|| number.as_u64().map(i128::from))
    };
    if let (Some(one), Some(other)) = (integer(one), integer(other)) {
        return Some(one.cmp(&other));
    }
    let float = |number: &Number| match integer(number) {
        Some(integer) => i32::try_from(integer).ok().map(f64::from),
        None => number.as_f64(),
    };
    float(one)?.partial_cmp(&float(other)?)
}

fn all(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    verdicts.min().unwrap_or(Verdict::Fits)
}

fn one(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut fitting = 0;
    for verdict in verdicts {
        match verdict {
            Verdict::Fits => fitting += 1,
            Verdict::Unsure => return Verdict::Unsure,
            Verdict::Broken => {}
        }
    }
    (fitting == 1).into()
}

#[cfg(test)]
mod tests;
