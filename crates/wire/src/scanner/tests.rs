//! The scanner agrees with the parser: on what is JSON, and on what it says.

use proptest::prelude::*;
use serde_json::Value;

use super::JsonScanner;
use crate::json::Json;

/// Builds a value by the scanner alone.
fn value(scanner: &mut JsonScanner<'_>) -> Option<Value> {
    let mut probe = scanner.clone();
    if probe.nothing().is_some() {
        let text = scanner.raw()?;
        return serde_json::from_str(text).ok();
    }
    let mut members = serde_json::Map::new();
    let mut probe = scanner.clone();
    let object = probe.object(|scanner, name| {
        members.insert(name.to_owned(), value(scanner)?);
        Some(())
    });
    if object.is_some() {
        *scanner = probe;
        return Some(Value::Object(members));
    }
    let mut items = Vec::new();
    let mut probe = scanner.clone();
    let array = probe.array(|scanner| {
        items.push(value(scanner)?);
        Some(())
    });
    if array.is_some() {
        *scanner = probe;
        return Some(Value::Array(items));
    }
    let mut probe = scanner.clone();
    if let Some(text) = probe.string() {
        *scanner = probe;
        return Some(Value::String(text.into_owned()));
    }
    let mut probe = scanner.clone();
    if let Some(count) = probe.count() {
        *scanner = probe;
        return Some(count.into());
    }
    serde_json::from_str(scanner.raw()?).ok()
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z]{0,20}".boxed(),
        any::<String>().boxed(),
        r#"["\\/\n\t\u{1}\u{7f}é𝄞a]{0,12}"#.boxed(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Those beyond are left to who reads them as numbers.
        (-1e99..1e99).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, move |inner| {
        let name = "[a-z\"é]{0,9}";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn whole(text: &str) -> Option<()> {
    let mut scanner = JsonScanner::new(text);
    scanner.skip()?;
    scanner.is_at_end().then_some(())
}

#[test]
fn what_is_no_json_is_not_taken() {
    for text in [
        "",
        "nul",
        "01",
        "-",
        "1.",
        "1e",
        ".5",
        "+1",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "[1 2]",
        "1 1",
        "[}",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "'a'",
    ] {
        assert_eq!(whole(text), None, "{text}");
    }
    assert_eq!(whole(&"[".repeat(100_000)), None);
}

#[test]
fn escapes_mean_what_they_mean() {
    for text in [
        r#""\"\\\/\b\f\n\r\t""#,
        r#""\u00e9\u20AC\ud834\udd1e x""#,
        r#""0123456789\n0123456789""#,
    ] {
        let mut scanner = JsonScanner::new(text);
        let said: String = serde_json::from_str(text).unwrap();
        assert_eq!(scanner.string().unwrap(), said);
        assert!(scanner.is_at_end());
        assert_eq!(whole(text), Some(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_reads_what_the_parser_reads(value in any_value(), pretty: bool) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        prop_assert_eq!(whole(&text).is_some(), !has_escaped_name(&value));
        let tree = JsonScanner::new(&text).value();
        prop_assert_eq!(tree.is_some(), !has_escaped_name(&value));
        prop_assert!(tree.is_none() || tree == Json::parse(&text).ok(), "{}", text);
        if let Some(read) = self::value(&mut JsonScanner::new(&text)) {
            prop_assert_eq!(read, serde_json::from_str::<Value>(&text).unwrap());
        }
    }

    #[test]
    fn it_takes_nothing_that_the_parser_refuses(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(br#" {}[]",:\u0123dnull-.eE"#.to_vec()),
        delete: bool,
    ) {
        let mut text = value.to_string().into_bytes();
        let at = at.index(text.len());
        if delete {
            text.remove(at);
        } else {
            text.insert(at, byte);
        }
        if let Ok(text) = String::from_utf8(text)
            && whole(&text).is_some()
        {
            prop_assert_eq!(JsonScanner::new(&text).value(), Json::parse(&text).ok(), "{}", text);
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(), "{}", text);
        }
    }
}

fn has_escaped_name(value: &Value) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains('"') || has_escaped_name(value)),
        Value::Array(items) => items.iter().any(has_escaped_name),
        _ => false,
    }
}
