//! From the argument text that was streamed to the one that counts.

use serde::de::IgnoredAny;

use crate::json::Json;
use crate::scanner::JsonScanner;

/// The argument text of a call that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct ResolvedArguments {
    /// The text that counts.
    pub text: String,
    /// Whether nothing is missing. Only a reply that was cut has calls that are not whole.
    pub whole: bool,
}

/// What the pieces come to.
///
/// Nothing, blanks and `null` are no arguments: `{}`, unless the reply was cut, when they are
/// missing. An object that was sent again (also as JSON text within a JSON string) counts once; `{}`
/// before an object is a placeholder of servers that announce the call first. What cannot be read
/// stays as it is.
pub fn resolve(text: String, reply_was_cut: bool) -> ResolvedArguments {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "null" {
        return ResolvedArguments {
            text: "{}".to_owned(),
            whole: !reply_was_cut,
        };
    }
    if scanned_object(trimmed).is_some() {
        return ResolvedArguments { text, whole: true };
    }
    let is_json = serde_json::from_str::<IgnoredAny>(trimmed).is_ok();
    if is_json && !trimmed.starts_with('"') {
        return ResolvedArguments { text, whole: true };
    }
    if let Some(object) = one_object(trimmed) {
        return ResolvedArguments {
            text: object,
            whole: true,
        };
    }
    ResolvedArguments {
        text,
        whole: is_json || !reply_was_cut,
    }
}

/// Whether the text is one whole JSON object with something in it.
pub fn is_filled_object(text: &str) -> bool {
    if let Some(is_filled) = scanned_object(text) {
        return is_filled;
    }
    let trimmed = text.trim();
    trimmed.starts_with('{')
        && trimmed.ends_with('}')
        && Json::parse(trimmed).is_ok_and(|value| !value.is_empty())
}

/// Whether the text is one whole JSON object.
pub fn is_object(text: &str) -> bool {
    scanned_object(text).is_some() || {
        let trimmed = text.trim();
        trimmed.starts_with('{')
            && trimmed.ends_with('}')
            && serde_json::from_str::<IgnoredAny>(trimmed).is_ok()
    }
}

/// Whether an object in its plain form has something in it; `None` of a text that is none, or an unusual
/// one.
fn scanned_object(text: &str) -> Option<bool> {
    let mut scanner = JsonScanner::new(text);
    let mut is_filled = false;
    scanner.object(|scanner, _| {
        is_filled = true;
        scanner.skip()
    })?;
    scanner.is_at_end().then_some(is_filled)
}

/// Whether two texts are the same JSON.
pub fn is_same(left: &str, right: &str) -> bool {
    if left == right {
        return true;
    }
    let parse = serde_json::from_str::<serde_json::Value>;
    match (parse(left), parse(right)) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    }
}

/// The one object that a sequence of JSON values repeats, if it does.
fn one_object(text: &str) -> Option<String> {
    let mut found: Option<Json> = None;
    for value in serde_json::Deserializer::from_str(text).into_iter::<Json>() {
        let value = match value.ok()? {
            Json::String(inner) => Json::parse(inner.trim()).ok()?,
            value => value,
        };
        match value {
            Json::Null => {}
            Json::Object(members) if members.is_empty() => {
                found.get_or_insert(Json::Object(members));
            }
            Json::Object(members) => {
                let value = Json::Object(members);
                match &found {
                    Some(first) if first.is_empty() => found = Some(value),
                    Some(first) if first.to_value() == value.to_value() => {}
                    Some(_) => return None,
                    None => found = Some(value),
                }
            }
            _ => return None,
        }
    }
    found.map(|value| value.to_text())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ResolvedArguments, is_filled_object, is_object, resolve};
    use crate::json::Json;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Texts that are objects, nearly objects, and anything.
        #[test]
        fn objects_are_those_of_the_parser(
            text in prop_oneof![
                r#" ?\{("[a\\"]{1,2}":(1|-0|01|"b"|\[\]|\{\}|null),?){0,3}\} ?"#,
                r#"[{}\[\]":,a1 ]{0,12}"#,
            ]
        ) {
            let parsed = Json::parse(&text);
            let object = parsed.as_ref().ok().filter(|value| value.is_object());
            prop_assert_eq!(is_object(&text), object.is_some(), "{}", text);
            let is_filled = object.is_some_and(|object| !object.is_empty());
            prop_assert_eq!(is_filled_object(&text), is_filled, "{}", text);
        }
    }

    fn whole(text: &str) -> ResolvedArguments {
        ResolvedArguments {
            text: text.to_owned(),
            whole: true,
        }
    }

    #[test]
    fn what_a_finished_reply_has() {
        for (sent, counts) in [
            ("", "{}"),
            (" \n", "{}"),
            ("null", "{}"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("{\"a\":1} \n", "{\"a\":1} \n"),
            (r#"{}{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1}{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1}{"a":2}"#, r#"{"a":1}{"a":2}"#),
            (r#""{\"b\":1,\"a\":2}""#, r#"{"b":1,"a":2}"#),
            (r#"{"a":1}"{\"a\":1}""#, r#"{"a":1}"#),
            (r#"["Paris"]"#, r#"["Paris"]"#),
            (r#""Paris""#, r#""Paris""#),
            ("{city: Paris}", "{city: Paris}"),
        ] {
            assert_eq!(resolve(sent.to_owned(), false), whole(counts), "{sent}");
        }
    }

    #[test]
    fn what_a_cut_reply_lacks() {
        for sent in ["", "null", r#"{"a":"#, r#"{"a":1}{"b"#] {
            assert!(!resolve(sent.to_owned(), true).whole, "{sent}");
        }
        assert!(resolve("{}".to_owned(), true).whole);
    }
}
