//! JSON in one canonical form, for comparing.

use serde_json::Value;

/// JSON text with keys sorted and no white space, whatever order the value's own maps have: equal
/// values give equal text.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
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
