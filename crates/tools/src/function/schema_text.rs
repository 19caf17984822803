//! The JSON Schema of a type, as text in a form that providers take.

use std::fmt::Write as _;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::field_order::{FieldLists, field_lists};
use crate::schema::{Subschemas, subschemas_at};

/// The JSON Schema of a type, as text: what a typed tool declares.
///
/// It is what `schemars` derives (draft 2020-12, the side that is read), changed so that providers
/// take it and models read it well:
///
/// - properties stand in the order of the fields, as far as it shows (fields of flattened, untagged
///   and internally tagged types do not; of those the required ones come first, in their order);
/// - types within are written in place; only recursive ones stay under `$defs`;
/// - `$schema` and the root's `title` are left out;
/// - formats of numbers (`uint8`), which some providers refuse, are left out; those of 8, 16 and 32
///   bits become `minimum` and `maximum`;
/// - the root says `"type": "object"`, whatever it is made of.
pub fn parameters_schema<T: JsonSchema + DeserializeOwned>() -> String {
    let settings = SchemaSettings::draft2020_12()
        .for_deserialize()
        .with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
    let mut root = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(root) = root.as_object_mut() {
        root.remove("title");
        root.entry("type").or_insert_with(|| "object".into());
    }
    replace_number_formats(&mut root);
    refer_to_definitions(&mut root);
    let mut text = String::new();
    write_schema(&root, &field_lists::<T>(), &mut text);
    text
}

/// Whether a type is `()` or a unit struct.
pub(super) fn is_unit<T: JsonSchema>() -> bool {
    let schema = T::json_schema(&mut SchemaSettings::default().into_generator());
    schema.get("type").and_then(Value::as_str) == Some("null")
}

/// Replaces the formats of numbers by bounds, or drops them.
fn replace_number_formats(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(format) = object.get("format").and_then(Value::as_str) {
        let bounds = match format {
            "int8" => Some((i64::from(i8::MIN), i64::from(i8::MAX))),
            "int16" => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
            "int32" => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            "uint8" => Some((0, i64::from(u8::MAX))),
            "uint16" => Some((0, i64::from(u16::MAX))),
            "uint32" => Some((0, i64::from(u32::MAX))),
            _ => None,
        };
        let is_of_a_number = bounds.is_some()
            || matches!(
                format,
                "int" | "int64" | "int128" | "uint" | "uint64" | "uint128" | "float" | "double"
            );
        if is_of_a_number {
            object.remove("format");
        }
        if let Some((least, most)) = bounds {
            object.entry("minimum").or_insert_with(|| least.into());
            object.entry("maximum").or_insert_with(|| most.into());
        }
    }
    for_each_subschema(object, &mut replace_number_formats);
}

/// `schemars` writes a recursive type in place once more than needed: refers to `$defs` instead.
fn refer_to_definitions(root: &mut Value) {
    fn refer(schema: &mut Value, definitions: &Map<String, Value>) {
        if let Some((name, _)) = definitions.iter().find(|(_, known)| *known == schema) {
            *schema = json!({"$ref": format!("#/$defs/{name}")});
        } else if let Some(object) = schema.as_object_mut() {
            for_each_subschema(object, &mut |schema| refer(schema, definitions));
        }
    }
    let Some(root) = root.as_object_mut() else {
        return;
    };
    let Some(Value::Object(definitions)) = root.remove("$defs") else {
        return;
    };
    for_each_subschema(root, &mut |schema| refer(schema, &definitions));
    root.insert("$defs".into(), definitions.into());
}

fn for_each_subschema(object: &mut Map<String, Value>, change: &mut dyn FnMut(&mut Value)) {
    for (keyword, value) in object {
        match (subschemas_at(keyword), value) {
            (Some(Subschemas::One), value) => change(value),
            (Some(Subschemas::List), Value::Array(schemas)) => {
                schemas.iter_mut().for_each(&mut *change);
            }
            (Some(Subschemas::Map), Value::Object(schemas)) => {
                schemas.values_mut().for_each(&mut *change);
            }
            _ => {}
        }
    }
}

/// Keywords that come first, in the order in which a reader wants them. The others follow by name,
/// `$defs` last.
const FIRST: [&str; 8] = [
    "$ref",
    "type",
    "description",
    "const",
    "enum",
    "properties",
    "required",
    "items",
];

fn write_schema(schema: &Value, lists: &FieldLists, text: &mut String) {
    let Value::Object(object) = schema else {
        write_value(schema, text);
        return;
    };
    let mut keywords: Vec<&String> = object.keys().collect();
    keywords.sort_by_key(|keyword| {
        let place = FIRST.iter().position(|first| first == keyword);
        (*keyword == "$defs", place.unwrap_or(FIRST.len()))
    });
    write_members(keywords, text, |keyword, text| {
        let value = &object[keyword];
        match (subschemas_at(keyword), value) {
            (Some(Subschemas::One), value) => write_schema(value, lists, text),
            (Some(Subschemas::List), Value::Array(schemas)) => {
                text.push('[');
                for (index, schema) in schemas.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    write_schema(schema, lists, text);
                }
                text.push(']');
            }
            (Some(Subschemas::Map), Value::Object(schemas)) => {
                let names = if keyword == "properties" {
                    in_field_order(schemas, object.get("required"), lists)
                } else {
                    schemas.keys().collect()
                };
                write_members(names, text, |name, text| {
                    write_schema(&schemas[name], lists, text);
                });
            }
            _ => write_value(value, text),
        }
    });
}

fn write_members(names: Vec<&String>, text: &mut String, write: impl Fn(&String, &mut String)) {
    text.push('{');
    for (index, name) in names.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_value(&name.as_str().into(), text);
        text.push(':');
        write(name, text);
    }
    text.push('}');
}

fn write_value(value: &Value, text: &mut String) {
    write!(text, "{value}").expect("a string takes all");
}

/// The names of properties, in the order of the fields of the type that they are of.
fn in_field_order<'a>(
    properties: &'a Map<String, Value>,
    required: Option<&Value>,
    lists: &FieldLists,
) -> Vec<&'a String> {
    let mut names: Vec<&String> = properties.keys().collect();
    let fields = lists
        .iter()
        .filter(|fields| names.iter().all(|name| fields.contains(&name.as_str())))
        .min_by_key(|fields| fields.len());
    if let Some(fields) = fields {
        names.sort_by_key(|name| fields.iter().position(|field| field == name));
    } else if let Some(Value::Array(required)) = required {
        names.sort_by_key(|name| {
            let place = required
                .iter()
                .position(|required| required == name.as_str());
            place.unwrap_or(required.len())
        });
    }
    names
}
