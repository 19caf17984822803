//! Plain schemas of all kinds against the full validator: what is said to fit does, what is said not to
//! does not, and what is read as plain compiles.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::super::validator;
use super::{PlainSchema, Verdict};

const NAMES: [&str; 4] = ["a", "b", "ä/~", "$ref"];

fn scalar() -> impl Strategy<Value = Value> {
    let large = vec![u64::MAX, u64::MAX - 1, 9_007_199_254_740_993];
    let floats = vec![
        0.0,
        -0.0,
        1.0,
        1.5,
        -2.5,
        9_007_199_254_740_992.0,
        1.8e19,
        1e300,
    ];
    let texts = vec!["", "a", "é", "éé", "e\u{301}", "𝄞𝄞", "red", "green"];
    prop_oneof![
        1 => Just(json!(null)),
        1 => any::<bool>().prop_map(Value::from),
        2 => (-3..4).prop_map(Value::from),
        1 => select(large).prop_map(Value::from),
        1 => Just(json!(i64::MIN)),
        1 => select(floats).prop_map(Value::from),
        3 => select(texts).prop_map(Value::from),
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(select(NAMES.to_vec()), inner, 0..4)
                .prop_map(|members| object(members.into_iter())),
        ]
    })
}

fn object<'a>(members: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Value::Object(members.collect())
}

/// One keyword, or a few that belong together.
fn keyword(inner: impl Strategy<Value = Value> + Clone + 'static) -> BoxedStrategy<Value> {
    const TYPES: [&str; 7] = [
        "null", "boolean", "string", "array", "object", "integer", "number",
    ];
    let number = prop_oneof![
        (-3..4).prop_map(Value::from),
        select(vec![0.5, 1.0, -2.0, 9_007_199_254_740_992.0]).prop_map(Value::from),
        select(vec![u64::MAX, 9_007_199_254_740_992]).prop_map(Value::from),
    ];
    let limit = select(vec![
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]);
    let size = select(vec!["minLength", "maxLength", "minItems", "maxItems"]);
    let group = select(vec!["allOf", "anyOf", "oneOf"]);
    let members = prop::collection::btree_map(select(NAMES.to_vec()), inner.clone(), 0..4);
    prop_oneof![
        select(TYPES.to_vec()).prop_map(|name| json!({"type": name})),
        subsequence(TYPES.to_vec(), 1..4).prop_map(|names| json!({"type": names})),
        prop::collection::vec(scalar(), 0..4).prop_map(|values| json!({"enum": values})),
        scalar().prop_map(|value| json!({"const": value})),
        (limit, number).prop_map(|(keyword, limit)| json!({keyword: limit})),
        (size, 0..4).prop_map(|(keyword, limit)| json!({keyword: limit})),
        subsequence(NAMES.to_vec(), 0..3).prop_map(|names| json!({"required": names})),
        (members, prop::option::of(inner.clone())).prop_map(|(members, others)| {
            let mut schema = json!({"properties": object(members.into_iter())});
            if let Some(others) = others {
                schema["additionalProperties"] = others;
            }
            schema
        }),
        inner
            .clone()
            .prop_map(|schema| json!({"additionalProperties": schema})),
        inner.clone().prop_map(|schema| json!({"items": schema})),
        (group, prop::collection::vec(inner, 1..4))
            .prop_map(|(keyword, schemas)| json!({keyword: schemas})),
        select(vec!["#", "#/$defs/first", "#/$defs/second"]).prop_map(|to| json!({"$ref": to})),
        Just(json!({"title": "t", "description": "d", "format": "date", "default": {"$ref": 1}})),
    ]
    .boxed()
}

fn schema() -> impl Strategy<Value = Value> + Clone {
    let leaf = prop_oneof![any::<bool>().prop_map(Value::from), Just(json!({}))];
    leaf.prop_recursive(2, 24, 4, keywords)
}

/// Some keywords in one schema.
fn keywords(inner: impl Strategy<Value = Value> + Clone + 'static) -> BoxedStrategy<Value> {
    prop::collection::vec(keyword(inner), 1..4)
        .prop_map(|keywords| {
            let members = keywords.iter().filter_map(Value::as_object);
            let members = members.flatten();
            object(members.map(|(name, value)| (name.as_str(), value.clone())))
        })
        .boxed()
}

/// Within a schema that its graph lets through: the check itself does not look for endless references.
fn is_bounded(document: &Value, value: &Value) -> bool {
    use super::super::graph::{Admission, Graph};
    Graph::new(document).is_ok_and(|graph| graph.admit(value) == Ok(Admission::Whole))
}

fn has_number(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::Array(items) => items.iter().any(has_number),
        Value::Object(object) => object.values().any(has_number),
        _ => false,
    }
}

#[test]
fn limits_at_their_edges() {
    let check = |schema: Value, value: Value| {
        let plain = PlainSchema::read(&schema).expect("a plain schema");
        plain.check(&value)
    };
    let (below, at, above) = (json!(u64::MAX - 2), json!(u64::MAX - 1), json!(u64::MAX));
    let [broken, fits] = [Verdict::Broken, Verdict::Fits];
    for (keyword, expected) in [
        ("minimum", [broken, fits, fits]),
        ("maximum", [fits, fits, broken]),
        ("exclusiveMinimum", [broken, broken, fits]),
        ("exclusiveMaximum", [fits, broken, broken]),
    ] {
        let values = [&below, &at, &above];
        let found = values.map(|value| check(json!({keyword: at}), value.clone()));
        assert_eq!(found, expected, "{keyword}");
        let values = [0.5, 1.5, 2.5].map(Value::from);
        let found = values.map(|value| check(json!({keyword: 1.5}), value));
        assert_eq!(found, expected, "{keyword}");
        let values = [json!(-2.5), json!(-2.0), json!(-1.5)];
        let found = values.map(|value| check(json!({keyword: -2}), value));
        assert_eq!(found, expected, "{keyword}");
    }
    for (keyword, expected) in [
        ("minLength", [broken, fits, fits]),
        ("maxLength", [fits, fits, broken]),
    ] {
        let found = ["𝄞", "e\u{301}", "abc"].map(|text| check(json!({keyword: 2}), json!(text)));
        assert_eq!(found, expected, "{keyword}");
    }
    for (keyword, expected) in [
        ("minItems", [broken, fits, fits]),
        ("maxItems", [fits, fits, broken]),
    ] {
        let found = [json!([1]), json!([1, 2]), json!([1, 2, 3])];
        let found = found.map(|items| check(json!({keyword: 2}), items));
        assert_eq!(found, expected, "{keyword}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_full_validator(
        root in keywords(schema()),
        first in schema(),
        second in schema(),
        values in prop::collection::vec(instance(), 24),
    ) {
        let mut document = root;
        document["$defs"] = json!({"first": first, "second": second});
        let plain = PlainSchema::read(&document).expect("nothing but plain keywords");
        let full = validator(&document);
        for value in &values {
            if !is_bounded(&document, value) {
                continue;
            }
            let full = full.as_ref().expect("what is plain compiles");
            match plain.check(value) {
                Verdict::Fits => prop_assert!(full.is_valid(value), "{value} {document}"),
                Verdict::Broken => prop_assert!(!full.is_valid(value), "{value} {document}"),
                Verdict::Unsure => {}
            }
        }
    }

    /// Only numbers can be undecided.
    #[test]
    fn decides_whatever_has_no_numbers(root in schema(), value in instance()) {
        let document = json!({"allOf": [root], "$defs": {"first": {}, "second": {}}});
        if !has_number(&value) && is_bounded(&document, &value) {
            let plain = PlainSchema::read(&document).expect("nothing but plain keywords");
            prop_assert_ne!(plain.check(&value), Verdict::Unsure);
        }
    }
}
