//! From a schema document to the graph of its schemas, with every reference followed.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::bounds::{MAX_PATTERN_LENGTH, MAX_PATTERNS};
use super::graph::{Node, Select};
use super::keywords::{Subschemas, subschemas_at};
use crate::arguments::cut;

/// The schemas of a document. The root is the first.
///
/// # Errors
/// A reference that leads outside or nowhere, a schema with an address of its own, too many or too
/// long regular expressions.
pub(super) fn walk(root: &Value) -> Result<Vec<Node>, String> {
    let is_draft_4 = matches!(
        root.get("$schema"),
        Some(Value::String(uri)) if uri.contains("draft-04")
    );
    let mut walk = Walk {
        root,
        id_keyword: if is_draft_4 { "id" } else { "$id" },
        nodes: Vec::new(),
        by_pointer: HashMap::new(),
        by_anchor: HashMap::new(),
        references: Vec::new(),
        patterns: 0,
    };
    walk.add(root, "")?;
    while let Some((source, reference)) = walk.references.pop() {
        let target = walk.resolve(reference)?;
        walk.nodes[source].in_place.push(target);
    }
    Ok(walk.nodes)
}

struct Walk<'a> {
    root: &'a Value,
    id_keyword: &'static str,
    nodes: Vec<Node>,
    by_pointer: HashMap<String, usize>,
    by_anchor: HashMap<&'a str, usize>,
    /// References that are not followed yet, by the schema that they stand in.
    references: Vec<(usize, &'a str)>,
    patterns: usize,
}

impl<'a> Walk<'a> {
    /// Adds the schema at a place, and all below.
    fn add(&mut self, schema: &'a Value, pointer: &str) -> Result<usize, String> {
        if let Some(&known) = self.by_pointer.get(pointer) {
            return Ok(known);
        }
        let node = self.nodes.len();
        self.nodes.push(Node::default());
        self.by_pointer.insert(pointer.to_owned(), node);
        if let Value::Object(object) = schema {
            self.note_names(node, object, pointer)?;
            for (keyword, value) in object {
                self.add_keyword(node, keyword, value, pointer)?;
            }
            // What is unevaluated is found by looking at everything in place once more.
            if object.contains_key("unevaluatedProperties")
                || object.contains_key("unevaluatedItems")
            {
                let again = self.nodes[node].in_place.clone();
                self.nodes[node].in_place.extend(again);
            }
        }
        Ok(node)
    }

    fn note_names(
        &mut self,
        node: usize,
        object: &'a Map<String, Value>,
        pointer: &str,
    ) -> Result<(), String> {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(anchor)) = object.get(keyword) {
                self.by_anchor.insert(anchor, node);
            }
        }
        if let Some(Value::String(id)) = object.get(self.id_keyword) {
            if let Some(anchor) = id.strip_prefix('#') {
                self.by_anchor.insert(anchor, node);
            } else if !pointer.is_empty() {
                return Err(format!(
                    "the schema at {} has a `{}` of its own, which is not supported: take it away, \
                     and refer to `#{}`",
                    cut(pointer, 80),
                    self.id_keyword,
                    cut(pointer, 80),
                ));
            }
        }
        Ok(())
    }

    fn add_keyword(
        &mut self,
        node: usize,
        keyword: &str,
        value: &'a Value,
        pointer: &str,
    ) -> Result<(), String> {
        match (keyword, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                self.references.push((node, reference));
                return Ok(());
            }
            ("pattern", Value::String(pattern)) => return self.count_pattern(pattern, pointer),
            ("patternProperties", Value::Object(schemas)) => schemas
                .keys()
                .try_for_each(|pattern| self.count_pattern(pattern, pointer))?,
            _ => {}
        }
        let here = format!("{pointer}/{keyword}");
        match (subschemas_at(keyword), value) {
            (Some(Subschemas::One), Value::Object(_) | Value::Bool(_)) => {
                let target = self.add(value, &here)?;
                self.link(node, keyword, None, target);
            }
            (Some(Subschemas::One | Subschemas::List), Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    let target = self.add(schema, &format!("{here}/{index}"))?;
                    self.link(node, keyword, Some(Place::Index(index)), target);
                }
            }
            (Some(Subschemas::Map), Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    let target = self.add(schema, &format!("{here}/{}", escape(name)))?;
                    self.link(node, keyword, Some(Place::Name(name)), target);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn link(&mut self, node: usize, keyword: &str, place: Option<Place<'_>>, target: usize) {
        let select = match (keyword, place) {
            ("$defs" | "definitions" | "contentSchema", _) => return,
            ("properties", Some(Place::Name(name))) => Select::Property(name.to_owned()),
            ("items" | "prefixItems", Some(Place::Index(index))) => Select::Item(index),
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", _) => Select::Items,
            ("additionalProperties" | "unevaluatedProperties" | "patternProperties", _) => {
                Select::Properties
            }
            ("propertyNames", _) => Select::Names,
            _ => {
                self.nodes[node].in_place.push(target);
                return;
            }
        };
        self.nodes[node].within.push((select, target));
    }

    fn count_pattern(&mut self, pattern: &str, pointer: &str) -> Result<(), String> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(format!(
                "it has more than {MAX_PATTERNS} regular expressions"
            ));
        }
        if pattern.chars().count() > MAX_PATTERN_LENGTH {
            return Err(format!(
                "the regular expression at {} is longer than {MAX_PATTERN_LENGTH} characters",
                cut(pointer, 80)
            ));
        }
        Ok(())
    }

    fn resolve(&mut self, reference: &str) -> Result<usize, String> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(format!(
                "it refers to '{}', which is outside of it, and nothing is fetched: put that schema \
                 under `$defs` and refer to `#/$defs/…`",
                cut(reference, 120)
            ));
        };
        let place = percent_decoded(fragment);
        let found = if place.is_empty() || place.starts_with('/') {
            match self.root.pointer(&place) {
                Some(schema) => Some(self.add(schema, &place)?),
                None => None,
            }
        } else {
            self.by_anchor.get(place.as_str()).copied()
        };
        found.ok_or_else(|| {
            format!(
                "it refers to '{}', and there is nothing of that name in it",
                cut(reference, 120)
            )
        })
    }
}

enum Place<'a> {
    Index(usize),
    Name(&'a str),
}

/// A name as a part of a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match code.map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(decoded)) if byte == b'%' => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
