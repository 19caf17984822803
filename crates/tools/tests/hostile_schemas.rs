//! Whatever schema and arguments a stranger thinks of: checking ends soon, and says little.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use raf_core::{ErrorKind, ToolDeclaration};
use raf_tools::CompiledSchema;
use serde_json::{Value, json};

/// How many definitions a schema has, each of which may refer to each.
const DEFINITIONS: usize = 4;

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!({"type": "object"})),
        Just(json!({"type": "integer"})),
        Just(json!({"const": 1})),
        Just(json!({"required": ["a"]})),
        Just(json!({"$ref": "#"})),
        (0..DEFINITIONS).prop_map(|to| json!({"$ref": format!("#/$defs/d{to}")})),
        (0..DEFINITIONS).prop_map(|to| json!({"$ref": format!("#/$defs/d{to}")})),
        (0..DEFINITIONS).prop_map(|to| json!({"$dynamicRef": format!("#/$defs/d{to}")})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (
                prop::sample::select(vec!["allOf", "anyOf", "oneOf"]),
                several
            )
                .prop_map(|(keyword, schemas)| json!({ keyword: schemas })),
            inner.clone().prop_map(|schema| json!({"not": schema})),
            inner.clone().prop_map(|schema| json!({"items": schema})),
            inner
                .clone()
                .prop_map(|schema| json!({"additionalProperties": schema})),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"if": a, "then": b})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({
                "anyOf": [{"properties": {"a": a}}, {"properties": {"a": b}}],
                "unevaluatedProperties": false,
            })),
            inner.prop_map(|schema| json!({"dependentSchemas": {"a": schema}})),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let bushy = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!({}))].prop_recursive(
        6,
        64,
        4,
        |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                (inner.clone(), inner).prop_map(|(a, b)| json!({"a": a, "b": b})),
            ]
        },
    );
    (bushy, 0..70).prop_map(|(end, levels)| {
        (0..levels).fold(end, |value, level| match level % 3 {
            0 => json!({"a": value, "b": 1}),
            1 => json!({"a": value}),
            _ => json!({"b": value, "a": {"a": {}}}),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn checking_ends_soon(
        root in schema(),
        definitions in prop::collection::vec(schema(), DEFINITIONS),
        arguments in prop::collection::vec(arguments(), 3),
    ) {
        let definitions: serde_json::Map<String, Value> = definitions
            .into_iter()
            .enumerate()
            .map(|(index, schema)| (format!("d{index}"), schema))
            .collect();
        let whole = json!({"type": "object", "allOf": [root], "$defs": definitions});
        let declaration = ToolDeclaration::new("tool", "").with_parameters(&whole);
        let begin = Instant::now();
        match CompiledSchema::compile(&declaration) {
            Ok(schema) => for arguments in &arguments {
                let faults = schema.faults(arguments);
                prop_assert!(faults.len() <= CompiledSchema::MAX_FAULTS);
                for fault in faults {
                    prop_assert!(fault.to_string().len() < 400, "{fault}");
                }
            },
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Configuration),
        }
        prop_assert!(begin.elapsed() < Duration::from_secs(3), "took {:?}: {whole}", begin.elapsed());
    }
}
