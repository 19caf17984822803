//! The meaning of the `wire_checks` of request cases.

use regex::Regex;
use serde_json::Value;

/// A provider's own operators: whether a body keeps a rule; `None` for an operator that it does not
/// know.
pub type OwnChecks = fn(check: &Value, body: &Value) -> Option<bool>;

/// Whether a request body keeps a rule.
///
/// # Panics
/// The rule's operator is not known.
pub fn holds(check: &Value, body: &Value, own: OwnChecks) -> bool {
    if let Some(holds) = own(check, body) {
        return holds;
    }
    let path = check["path"].as_str().unwrap_or("");
    let wanted = &check["value"];
    let found = get(body, path);
    let texts = || found.iter().map(|value| value.as_str());
    let number = || {
        wanted
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .unwrap_or(0)
    };
    match check["op"].as_str().unwrap_or("") {
        "absent" => found.is_empty(),
        "present" => !found.is_empty() && found.len() >= parents(body, path),
        "type" => found.iter().all(|value| match wanted.as_str() {
            Some("string") => value.is_string(),
            Some("object") => value.is_object(),
            _ => value.is_array(),
        }),
        "equals" => found.iter().all(|value| *value == wanted),
        "not_equals" => found.iter().all(|value| *value != wanted),
        "in" => found.iter().all(|value| list(wanted).contains(value)),
        "matches" => {
            let pattern = Pattern::new(wanted.as_str().unwrap_or(""));
            texts().all(|text| text.is_some_and(|text| pattern.fits(text)))
        }
        "max_len" => texts().all(|text| text.is_none_or(|text| text.chars().count() <= number())),
        "min" => found.iter().all(|value| value.as_f64() >= wanted.as_f64()),
        "min_items" => found.iter().all(|value| length(value) >= number()),
        "count" => found.len() == number(),
        "unique" => found
            .iter()
            .enumerate()
            .all(|(at, value)| !found[..at].contains(value)),
        "all_same" => found.windows(2).all(|pair| pair[0] == pair[1]),
        "json_object_text" => texts().all(|text| {
            let value = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
            value.is_some_and(|value| value.is_object())
        }),
        "all_required" => found.iter().all(|schema| {
            let properties = schema["properties"].as_object();
            let mut names: Vec<&str> = properties
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .collect();
            let mut required: Vec<&str> = list(&schema["required"])
                .iter()
                .filter_map(Value::as_str)
                .collect();
            names.sort_unstable();
            required.sort_unstable();
            required.dedup();
            names == required
        }),
        other => panic!("the runner does not know the check '{other}'"),
    }
}

/// A pattern that may begin with what must not be there, `^(?!…)`, which the crate regex does not know.
struct Pattern {
    never: Option<Regex>,
    pattern: Regex,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let regex = |text: &str| Regex::new(text).expect("a pattern");
        match text
            .strip_prefix("^(?!")
            .and_then(|rest| rest.split_once(')'))
        {
            Some((never, rest)) => Self {
                never: Some(regex(&format!("^(?:{never})"))),
                pattern: regex(&format!("^{rest}")),
            },
            None => Self {
                never: None,
                pattern: regex(text),
            },
        }
    }

    fn fits(&self, text: &str) -> bool {
        let is_refused = self
            .never
            .as_ref()
            .is_some_and(|never| never.is_match(text));
        !is_refused && self.pattern.is_match(text)
    }
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Object(members) => members.len(),
        value => list(value).len(),
    }
}

/// The elements of a list; none of anything else.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether a value says anything.
pub fn is_filled(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null => false,
        _ => true,
    }
}

/// The values at a dotted path, `*` for all.
pub fn get<'a>(body: &'a Value, path: &str) -> Vec<&'a Value> {
    path.split('.').fold(vec![body], |found, step| {
        found
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(items) if step == "*" => items.iter().collect(),
                Value::Object(members) if step == "*" => members.values().collect(),
                Value::Array(items) => at(items, step).into_iter().collect(),
                Value::Object(members) => members.get(step).into_iter().collect(),
                _ => Vec::new(),
            })
            .collect()
    })
}

fn at<'a>(items: &'a [Value], step: &str) -> Option<&'a Value> {
    let index: isize = step.parse().ok()?;
    if index < 0 {
        items.get(items.len().checked_sub(index.unsigned_abs())?)
    } else {
        items.get(index.unsigned_abs())
    }
}

fn parents(body: &Value, path: &str) -> usize {
    path.rsplit_once('.')
        .map_or(1, |(parent, _)| get(body, parent).len())
}
