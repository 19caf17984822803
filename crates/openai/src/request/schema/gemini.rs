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

/// The subset of JSON Schema that Gemini takes, with references resolved
/// (ai.google.dev/api/caching#Schema, danny-avila/LibreChat#13850).
pub(super) fn gemini(schema: &Json, root: &Json, depth: usize) -> Json {
    let Json::Object(members) = schema else {
        return Json::Object(Vec::new());
    };
    if depth == 0 {
        return Json::Object(vec![("type".to_owned(), Json::from("object"))]);
    }
    if let Some(target) = resolve(schema, root) {
        let mut resolved = gemini(target, root, depth - 1);
        if let Some(description) = schema.get("description") {
            resolved.set("description", description.clone());
        }
        return resolved;
    }
    let mut subset = Json::Object(Vec::new());
    for (name, value) in members {
        match name.as_str() {
            "type" => gemini_type(&mut subset, value),
            "format" if value.as_str() == Some("date-time") => subset.set(name, value.clone()),
            "const" => subset.set("enum", Json::Array(vec![value.clone()])),
            "properties" => {
                if let Json::Object(properties) = value
                    && !properties.is_empty()
                {
                    let properties = properties
                        .iter()
                        .map(|(name, property)| (name.clone(), gemini(property, root, depth - 1)));
                    subset.set(name, Json::Object(properties.collect()));
                }
            }
            "items" => subset.set(name, gemini(value, root, depth - 1)),
            "anyOf" | "oneOf" => gemini_union(&mut subset, value, root, depth),
            "allOf" => {
                for part in value.as_array().unwrap_or(&[]) {
                    if let Json::Object(members) = gemini(part, root, depth - 1) {
                        for (name, value) in members {
                            subset.set(&name, value);
                        }
                    }
                }
            }
            name if GEMINI_KEYWORDS.contains(&name) => subset.set(name, value.clone()),
            _ => {}
        }
    }
    subset
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

/// A union with null is a nullable variant.
fn gemini_union(subset: &mut Json, variants: &Json, root: &Json, depth: usize) {
    let is_null = |variant: &Json| variant.get("type").and_then(Json::as_str) == Some("null");
    let variants = variants.as_array().unwrap_or(&[]);
    if variants.iter().any(is_null) {
        subset.set("nullable", Json::Bool(true));
    }
    let others: Vec<Json> = variants
        .iter()
        .filter(|variant| !is_null(variant))
        .map(|variant| gemini(variant, root, depth - 1))
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
