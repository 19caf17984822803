//! Texts and values to arguments, and what a model reads of bad ones.

use raf_core::{ToolCall, ToolDeclaration};
use serde_json::json;

use super::{MAX_TEXT_BYTES, check_arguments, prepare_arguments};
use crate::CompiledSchema;

fn schema() -> CompiledSchema {
    let schema = json!({
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": "string", "maxLength": 3}},
        "required": ["id"],
    });
    CompiledSchema::compile(&ToolDeclaration::new("find", "").with_parameters(&schema)).unwrap()
}

fn refusal(arguments: &str) -> String {
    prepare_arguments(&ToolCall::new("1", "find", arguments), &schema())
        .unwrap_err()
        .to_string()
}

#[test]
fn what_fits_arrives_exact() {
    for id in [u64::MAX, 9_007_199_254_740_993] {
        let call = ToolCall::new("1", "find", format!(r#"{{"id":{id}}}"#));
        let arguments = prepare_arguments(&call, &schema()).unwrap();
        assert_eq!(arguments["id"].as_u64(), Some(id));
    }
    let call = ToolCall::new("1", "find", format!(r#" {{"id":{}}} "#, i64::MIN));
    let arguments = prepare_arguments(&call, &schema()).unwrap();
    assert_eq!(arguments["id"].as_i64(), Some(i64::MIN));
}

#[test]
fn blank_and_null_are_an_empty_object() {
    let anything = CompiledSchema::compile(&ToolDeclaration::new("now", "")).unwrap();
    for text in ["", " \n", "null", "{}", " null "] {
        let call = ToolCall::new("1", "now", text);
        assert!(
            prepare_arguments(&call, &anything).unwrap().is_empty(),
            "{text:?}"
        );
    }
    let text = refusal("");
    assert!(text.contains("/id is required"), "{text}");
    assert!(text.contains("Received: nothing"), "{text}");
}

#[test]
fn the_text_names_tool_path_and_what_arrived() {
    let text = refusal(r#"{"id": 1.5, "note": "much too long"}"#);
    for part in ["'find'", "- /id ", "- /note ", r#"Received: {"id": 1.5, "#] {
        assert!(text.contains(part), "{text}");
    }
    let text = refusal(r#"{"id": 1,}"#);
    assert!(text.contains("must be valid JSON"), "{text}");
    assert!(text.contains("line 1 column"), "{text}");
    for (arguments, found) in [
        ("[1]", "an array"),
        ("\"x\"", "a string"),
        ("7", "a number"),
    ] {
        let text = refusal(arguments);
        assert!(
            text.contains(&format!("must be a JSON object, not {found}")),
            "{text}"
        );
    }
}

#[test]
fn the_text_is_bounded_whatever_arrived() {
    let many = format!(r#""{}": 1,"#, "ключ".repeat(40)).repeat(100);
    let huge = format!(
        r#"{{{many} "id": "{}", "note": "{}"}}"#,
        "ä".repeat(9000),
        "x".repeat(9000)
    );
    for arguments in [huge.as_str(), &"[".repeat(10_000), &"é".repeat(5000)] {
        let text = refusal(arguments);
        assert!(text.len() <= MAX_TEXT_BYTES, "{} bytes", text.len());
        assert!(text.contains("(the first "), "{text}");
    }
}

#[test]
fn values_are_checked_as_texts_are() {
    assert!(check_arguments("find", json!({"id": 1}), &schema()).is_ok());
    let refused = check_arguments("find", json!({"id": "1"}), &schema()).unwrap_err();
    assert_eq!(refused.faults[0].pointer, "/id");
    assert!(check_arguments("find", json!([]), &schema()).is_err());
}
