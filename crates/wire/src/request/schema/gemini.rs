//! Gemini's subset of JSON Schema.

use super::resolve;
use crate::json::Json;

/// What Gemini's schemas may have.
const GEMINI_KEYWORDS: &[&str] = &[
    "title",
    "description",
    "nullable",
    "enum",
    "required",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
];

/// How much a schema may come to once its references are resolved: a JSON value counts as one, a long
/// text as one for every 64 bytes. A schema that refers to itself in many places grows with the power of
/// the depth.
const MAX_NODES: usize = 20_000;

const LONG_TEXT: usize = 64;

/// The subset of JSON Schema that Gemini takes, with references resolved
/// (ai.google.dev/api/caching#Schema, danny-avila/LibreChat#13850).
///
/// Resolved as deep as `depth`, or as deep as [`MAX_NODES`] allow: what is deeper is any object.
pub(super) fn gemini(schema: &Json, depth: usize) -> Json {
    let mut depth = depth;
    loop {
        let mut subset = Subset {
            root: schema,
            nodes: MAX_NODES,
        };
        let form = subset.of(schema, depth);
        if subset.nodes > 0 || depth <= 1 {
            return form;
        }
        depth -= 1;
    }
}

fn any_object() -> Json {
    Json::Object(vec![("type".to_owned(), Json::from("object"))])
}

/// How much a value counts.
fn weight(value: &Json) -> usize {
    match value {
        Json::String(text) => 1 + text.len() / LONG_TEXT,
        Json::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Json::Object(members) => {
            let members = members.iter();
            1 + members.map(|(_, value)| 1 + weight(value)).sum::<usize>()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => 1,
    }
}

struct Subset<'a> {
    root: &'a Json,
    /// How many more there may be.
    nodes: usize,
}

impl Subset<'_> {
    fn of(&mut self, schema: &Json, depth: usize) -> Json {
        let Json::Object(members) = schema else {
            return Json::Object(Vec::new());
        };
        self.nodes = self.nodes.saturating_sub(1);
        if depth == 0 || self.nodes == 0 {
            return any_object();
        }
        if let Some(target) = resolve(schema, self.root) {
            let mut resolved = self.of(target, depth - 1);
            if let Some(description) = schema.get("description") {
                self.set(&mut resolved, "description", description);
            }
            return resolved;
        }
        let mut subset = Json::Object(Vec::new());
        for (name, value) in members {
            match name.as_str() {
                "type" => gemini_type(&mut subset, value),
                "format" if value.as_str() == Some("date-time") => subset.set(name, value.clone()),
                "const" => self.set(&mut subset, "enum", &Json::Array(vec![value.clone()])),
                "properties" => {
                    if let Json::Object(properties) = value
                        && !properties.is_empty()
                    {
                        let properties = properties
                            .iter()
                            .map(|(name, property)| (name.clone(), self.of(property, depth - 1)));
                        subset.set(name, Json::Object(properties.collect()));
                    }
                }
                "items" => subset.set(name, self.of(value, depth - 1)),
                "anyOf" | "oneOf" => self.union(&mut subset, value, depth),
                "allOf" => {
                    for part in value.as_array().unwrap_or(&[]) {
                        if let Json::Object(members) = self.of(part, depth - 1) {
                            for (name, value) in members {
                                subset.set(&name, value);
                            }
                        }
                    }
                }
                name if GEMINI_KEYWORDS.contains(&name) => self.set(&mut subset, name, value),
                _ => {}
            }
        }
        subset
    }

    /// Copies a member, if there is room for it.
    fn set(&mut self, subset: &mut Json, name: &str, value: &Json) {
        self.nodes = self.nodes.saturating_sub(weight(value));
        if self.nodes > 0 {
            subset.set(name, value.clone());
        }
    }

    /// A union with null is a nullable variant.
    fn union(&mut self, subset: &mut Json, variants: &Json, depth: usize) {
        let is_null = |variant: &Json| variant.get("type").and_then(Json::as_str) == Some("null");
        let variants = variants.as_array().unwrap_or(&[]);
        if variants.iter().any(is_null) {
            subset.set("nullable", Json::Bool(true));
        }
        let others: Vec<Json> = variants
            .iter()
            .filter(|variant| !is_null(variant))
            .map(|variant| self.of(variant, depth - 1))
            .collect();
        match <[Json; 1]>::try_from(others) {
            Ok([Json::Object(members)]) => {
                for (name, value) in members {
                    subset.set(&name, value);
                }
            }
            Ok(_) => {}
            Err(others) => subset.set("anyOf", Json::Array(others)),
        }
    }
}

fn gemini_type(subset: &mut Json, kind: &Json) {
    let Json::Array(kinds) = kind else {
        return subset.set("type", kind.clone());
    };
    let is_null = |kind: &&Json| kind.as_str() == Some("null");
    if kinds.iter().any(|kind| is_null(&kind)) {
        subset.set("nullable", Json::Bool(true));
    }
    let others: Vec<&Json> = kinds.iter().filter(|kind| !is_null(kind)).collect();
    if let [one] = others[..] {
        return subset.set("type", one.clone());
    }
    let variants = others
        .into_iter()
        .map(|kind| Json::Object(vec![("type".to_owned(), kind.clone())]));
    subset.set("anyOf", Json::Array(variants.collect()));
}
