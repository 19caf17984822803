//! Schemas in the forms that servers take. Bounded: references are followed a few levels deep only, and
//! no further than so many nodes.

mod gemini;

use raf_core::JsonSchemaFormat;

use crate::json::Json;
use gemini::gemini;

/// What the schema of a tool's parameters, or of the answer, may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaForm {
    /// An object with `properties` at the top, no union (nerdai/llm-agents-from-scratch#861,
    /// langchain-ai/langchain#39306); else as written. Every server takes this.
    Object,
    /// Only the keywords of Gemini's subset, references resolved, no `parameters` for a tool without
    /// arguments (danny-avila/LibreChat#13850).
    GeminiSubset,
}

/// How deep schemas are followed and references resolved.
const DEPTH: usize = 12;

/// How many schemas are looked at when variants are merged: those that refer to themselves in many
/// places are without end.
const MAX_MERGED: usize = 20_000;

const UNIONS: &[&str] = &["anyOf", "oneOf", "allOf", "enum", "not"];

/// The parameters of a tool.
#[derive(Debug, Default)]
pub struct Parameters {
    /// The schema's text; none if the member is left out.
    pub text: Option<String>,
    /// Whether `strict` can be sent.
    pub is_strict: bool,
    /// The schema as it was, if optional properties became nullable.
    pub before: Option<Json>,
}

/// A tool's schema for the wire. One that fits is taken as it was written.
pub fn schema_for_tool(text: &str, strict: bool, form: SchemaForm) -> Parameters {
    let schema = Json::parse(text).unwrap_or(Json::Null);
    if form == SchemaForm::GeminiSubset {
        let object = as_object(&schema);
        let subset = gemini(&object, DEPTH);
        let has_properties = subset.filled("properties").is_some();
        return Parameters {
            text: has_properties.then(|| subset.to_text()),
            ..Parameters::default()
        };
    }
    let object = as_object(&schema);
    if strict {
        if let Some(strict) = strict_form(&object, DEPTH) {
            return Parameters {
                text: Some(strict.to_text()),
                is_strict: true,
                before: Some(object),
            };
        }
        tracing::warn!(
            "a schema has no strict form (an object with free keys, or too deep): strict is not sent"
        );
    }
    let fits = is_fit(&schema);
    Parameters {
        text: Some(if fits {
            text.to_owned()
        } else {
            object.to_text()
        }),
        ..Parameters::default()
    }
}

/// The schema of the answer for the wire.
pub fn schema_for_answer(format: &JsonSchemaFormat, form: SchemaForm) -> String {
    let text = format.schema.get();
    let Ok(schema) = Json::parse(text) else {
        return text.to_owned();
    };
    if form == SchemaForm::GeminiSubset {
        return gemini(&schema, DEPTH).to_text();
    }
    if format.strict == Some(true)
        && let Some(strict) = strict_form(&schema, DEPTH)
    {
        return strict.to_text();
    }
    text.to_owned()
}

/// Whether a value of null fits the schema.
pub fn takes_null(schema: &Json) -> bool {
    let is_null = |kind: &Json| kind.as_str() == Some("null");
    let by_type = match schema.get("type") {
        Some(Json::Array(kinds)) => kinds.iter().any(is_null),
        Some(kind) => is_null(kind),
        None => {
            let says_nothing = UNIONS.iter().all(|union| schema.get(union).is_none())
                && schema.get("$ref").is_none()
                && schema.get("const").is_none();
            says_nothing || schema.get("const") == Some(&Json::Null)
        }
    };
    let list = |name| schema.get(name).and_then(Json::as_array).unwrap_or(&[]);
    by_type
        || list("enum").contains(&Json::Null)
        || list("anyOf").iter().chain(list("oneOf")).any(takes_null)
        || schema.get("nullable") == Some(&Json::Bool(true))
}

fn is_fit(schema: &Json) -> bool {
    schema.get("type").and_then(Json::as_str) == Some("object")
        && schema.get("properties").is_some_and(Json::is_object)
        && UNIONS.iter().all(|union| schema.get(union).is_none())
}

/// A schema with an object at the top: what a union offers is merged.
fn as_object(schema: &Json) -> Json {
    if is_fit(schema) {
        return schema.clone();
    }
    let mut merged = Merged {
        root: schema,
        properties: Vec::new(),
        left: MAX_MERGED,
    };
    let required = merged.add(schema, DEPTH);
    let properties = merged.properties;
    let mut object = vec![
        ("type".to_owned(), Json::from("object")),
        ("properties".to_owned(), Json::Object(properties)),
    ];
    if !required.is_empty() {
        let names = required.iter().map(|name| Json::from(name.as_str()));
        object.push(("required".to_owned(), Json::Array(names.collect())));
    }
    if let Json::Object(members) = schema {
        let kept = members.iter().filter(|(name, _)| {
            !matches!(name.as_str(), "type" | "properties" | "required" | "$ref")
                && !UNIONS.contains(&name.as_str())
        });
        object.extend(kept.cloned());
    }
    Json::Object(object)
}

/// The properties that a schema and its variants have.
struct Merged<'a> {
    root: &'a Json,
    properties: Vec<(String, Json)>,
    /// How many more schemas are looked at.
    left: usize,
}

impl Merged<'_> {
    /// Adds a schema; tells what it requires: of variants, what all of them require.
    fn add(&mut self, schema: &Json, depth: usize) -> Vec<String> {
        let mut required = Vec::new();
        if depth == 0 || self.left == 0 {
            return required;
        }
        self.left -= 1;
        if let Some(target) = resolve(schema, self.root) {
            required.extend(self.add(target, depth - 1));
        }
        if let Some(Json::Object(own)) = schema.get("properties") {
            for (name, property) in own {
                if !self.properties.iter().any(|(known, _)| known == name) {
                    self.properties.push((name.clone(), property.clone()));
                }
            }
        }
        let list = |name| schema.get(name).and_then(Json::as_array).unwrap_or(&[]);
        let own = list("required").iter().filter_map(Json::as_str);
        required.extend(own.map(str::to_owned));
        for variant in list("allOf") {
            required.extend(self.add(variant, depth - 1));
        }
        let mut common: Option<Vec<String>> = None;
        for variant in list("anyOf").iter().chain(list("oneOf")) {
            let names = self.add(variant, depth - 1);
            common = Some(match common {
                Some(before) => before
                    .into_iter()
                    .filter(|name| names.contains(name))
                    .collect(),
                None => names,
            });
        }
        required.extend(common.unwrap_or_default());
        required.sort();
        required.dedup();
        required
    }
}

/// What a reference within the schema points to.
fn resolve<'a>(schema: &Json, root: &'a Json) -> Option<&'a Json> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix("#")?;
    if pointer.is_empty() {
        return Some(root);
    }
    pointer
        .strip_prefix('/')?
        .split('/')
        .try_fold(root, |at, step| {
            at.get(&step.replace("~1", "/").replace("~0", "~"))
        })
}

/// Formats that strict mode knows.
const STRICT_FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// OpenAI's strict form: every object is closed and requires all its properties, optional ones become
/// nullable (nerdai/llm-agents-from-scratch#861). `None` where there is no such form: an object with
/// free keys.
fn strict_form(schema: &Json, depth: usize) -> Option<Json> {
    let Json::Object(members) = schema else {
        return Some(schema.clone());
    };
    if depth == 0 {
        return None;
    }
    let is_object = schema.get("properties").is_some()
        || schema
            .get("type")
            .is_some_and(|kind| has_type(kind, "object"));
    if is_object
        && schema
            .get("additionalProperties")
            .is_some_and(|free| *free != Json::Bool(false))
    {
        return None;
    }
    let each = |map: &Json| -> Option<Json> {
        let Json::Object(entries) = map else {
            return Some(map.clone());
        };
        let entries = entries
            .iter()
            .map(|(name, schema)| Some((name.clone(), strict_form(schema, depth - 1)?)));
        Some(Json::Object(entries.collect::<Option<_>>()?))
    };
    let list = |items: &Json| -> Option<Json> {
        let items = items.as_array().unwrap_or(&[]).iter();
        Some(Json::Array(
            items
                .map(|item| strict_form(item, depth - 1))
                .collect::<Option<_>>()?,
        ))
    };
    let mut strict = Vec::with_capacity(members.len() + 2);
    for (name, value) in members {
        let (name, value) = match name.as_str() {
            "properties" => (name.as_str(), strict_properties(value, schema, depth)?),
            "$defs" | "definitions" => (name.as_str(), each(value)?),
            "items" => (name.as_str(), strict_form(value, depth - 1)?),
            // oneOf is not known to strict mode; the variants are the same.
            "anyOf" | "oneOf" => ("anyOf", list(value)?),
            "allOf" => ("allOf", list(value)?),
            "required" | "additionalProperties" | "default" | "$schema" => continue,
            "format"
                if !value
                    .as_str()
                    .is_some_and(|of| STRICT_FORMATS.contains(&of)) =>
            {
                continue;
            }
            other => (other, value.clone()),
        };
        strict.push((name.to_owned(), value));
    }
    if is_object {
        let mut names = Vec::new();
        if let Some(Json::Object(properties)) = schema.get("properties") {
            names.extend(properties.iter().map(|(name, _)| Json::from(name.as_str())));
        } else {
            strict.push(("properties".to_owned(), Json::Object(Vec::new())));
        }
        strict.push(("required".to_owned(), Json::Array(names)));
        strict.push(("additionalProperties".to_owned(), Json::Bool(false)));
    }
    Some(Json::Object(strict))
}

fn strict_properties(properties: &Json, schema: &Json, depth: usize) -> Option<Json> {
    let Json::Object(properties) = properties else {
        return Some(properties.clone());
    };
    let required = schema
        .get("required")
        .and_then(Json::as_array)
        .unwrap_or(&[]);
    let strict = properties.iter().map(|(name, property)| {
        let strict = strict_form(property, depth - 1)?;
        let is_required = required.iter().any(|of| of.as_str() == Some(name));
        let strict = if is_required {
            strict
        } else {
            nullable(strict)
        };
        Some((name.clone(), strict))
    });
    Some(Json::Object(strict.collect::<Option<_>>()?))
}

fn has_type(kind: &Json, name: &str) -> bool {
    match kind {
        Json::Array(kinds) => kinds.iter().any(|kind| kind.as_str() == Some(name)),
        kind => kind.as_str() == Some(name),
    }
}

fn nullable(mut schema: Json) -> Json {
    if takes_null(&schema) {
        return schema;
    }
    let null = || Json::from("null");
    let kind = schema.get("type").cloned();
    match kind {
        Some(kind) if schema.get("const").is_none() => {
            let kinds = match kind {
                Json::Array(mut kinds) => {
                    kinds.push(null());
                    kinds
                }
                kind => vec![kind, null()],
            };
            schema.set("type", Json::Array(kinds));
            if let Some(Json::Array(values)) = schema.get_mut("enum") {
                values.push(Json::Null);
            }
            schema
        }
        _ => {
            let none = Json::Object(vec![("type".to_owned(), null())]);
            Json::Object(vec![("anyOf".to_owned(), Json::Array(vec![schema, none]))])
        }
    }
}

#[cfg(test)]
mod tests;
