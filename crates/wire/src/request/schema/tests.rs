//! Schemas that refer to themselves stay bounded in every form.

use std::time::{Duration, Instant};

use raf_core::JsonSchemaFormat;
use serde_json::{Map, Value, json};

use super::{SchemaForm, schema_for_answer, schema_for_tool};

/// A tree whose every node has `n` children of its own kind.
fn tree(n: usize) -> Value {
    let child = json!({"$ref": "#/$defs/Node"});
    let children: Map<String, Value> = (0..n).map(|i| (format!("p{i}"), child.clone())).collect();
    json!({
        "type": "object",
        "properties": children,
        "$defs": {"Node": {"type": "object", "properties": children}},
    })
}

#[test]
fn a_schema_that_refers_to_itself_in_many_places_stays_small_for_gemini() {
    for n in [1, 8, 20, 300] {
        let begin = Instant::now();
        let schema = tree(n);
        let text = schema_for_tool(&schema.to_string(), false, SchemaForm::GeminiSubset)
            .text
            .unwrap();
        assert!(
            text.len() < 1_000_000,
            "{n} properties: {} bytes",
            text.len()
        );
        assert!(begin.elapsed() < Duration::from_secs(10));
        let sent: Value = serde_json::from_str(&text).unwrap();
        // Every branch is cut at the same depth, and every property is there.
        assert_eq!(sent["properties"].as_object().unwrap().len(), n);
        for child in sent["properties"].as_object().unwrap().values() {
            assert_eq!(child["type"], "object");
            assert_eq!(*child, sent["properties"]["p0"]);
        }
        let answer = schema_for_answer(
            &JsonSchemaFormat::new("answer", &schema),
            SchemaForm::GeminiSubset,
        );
        assert!(answer.len() < 1_000_000);
    }
}

#[test]
fn a_long_description_in_many_places_stays_small_for_gemini() {
    let mut schema = tree(20);
    schema["$defs"]["Node"]["description"] = json!("long ".repeat(2_000));
    let text = schema_for_tool(&schema.to_string(), false, SchemaForm::GeminiSubset)
        .text
        .unwrap();
    assert!(text.len() < 3_000_000, "{} bytes", text.len());
}

#[test]
fn variants_that_refer_to_the_whole_are_merged_within_bounds() {
    let own = json!({"$ref": "#"});
    let schema = json!({
        "anyOf": vec![own.clone(); 20],
        "allOf": vec![own; 20],
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
    });
    let begin = Instant::now();
    let text = schema_for_tool(&schema.to_string(), false, SchemaForm::Object)
        .text
        .unwrap();
    assert!(begin.elapsed() < Duration::from_secs(10));
    let sent: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(sent["properties"], json!({"a": {"type": "string"}}));
    assert_eq!(sent["required"], json!(["a"]));
}
