//! JSON in one canonical form, for comparing.

use serde::Serialize;
use serde_json::{Map, Value};

/// JSON text with keys sorted and no white space, whatever order the value's own maps have: equal
/// values give equal text.
pub fn canonical_json(value: &Value) -> String {
    text(|bytes| write(value, bytes))
}

/// As [`canonical_json`], of an object that is no value of its own.
pub fn canonical_object(object: &Map<String, Value>) -> String {
    text(|bytes| write_object(object, bytes))
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::with_capacity(128);
    write(&mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

fn write(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Object(object) => write_object(object, bytes),
        Value::Array(items) => {
            bytes.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                write(item, bytes);
            }
            bytes.push(b']');
        }
        scalar => put(scalar, bytes),
    }
}

fn write_object(object: &Map<String, Value>, bytes: &mut Vec<u8>) {
    bytes.push(b'{');
    let member = |first: bool, key: &String, value: &Value, bytes: &mut Vec<u8>| {
        if !first {
            bytes.push(b',');
        }
        put(key, bytes);
        bytes.push(b':');
        write(value, bytes);
    };
    let start = bytes.len();
    if object.keys().is_sorted() {
        for (key, value) in object {
            member(bytes.len() == start, key, value, bytes);
        }
    } else {
        let mut entries: Vec<_> = object.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in entries {
            member(bytes.len() == start, key, value, bytes);
        }
    }
    bytes.push(b'}');
}

/// A text, a number or a word: writing one to memory cannot fail.
fn put(scalar: &impl Serialize, bytes: &mut Vec<u8>) {
    let written = serde_json::to_writer(bytes, scalar);
    debug_assert!(written.is_ok(), "a scalar is written");
}

#[cfg(test)]
mod tests {
    use super::canonical_json;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = serde_json::json!({"b": [{"z": 1, "a": "x\"y"}], "a": null});
        assert_eq!(
            canonical_json(&value),
            r#"{"a":null,"b":[{"a":"x\"y","z":1}]}"#
        );
    }
}
