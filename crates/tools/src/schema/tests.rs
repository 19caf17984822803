//! Faults in words, types of all forms, and schemas and arguments that are hostile.

use std::time::{Duration, Instant};

use raf_core::{ErrorKind, ToolDeclaration};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::CompiledSchema;
use crate::function::parameters_schema;

fn compile(schema: &Value) -> Result<CompiledSchema, String> {
    let declaration = ToolDeclaration::new("tool", "").with_parameters(schema);
    compile_declaration(&declaration)
}

fn compile_declaration(declaration: &ToolDeclaration) -> Result<CompiledSchema, String> {
    CompiledSchema::compile(declaration).map_err(|error| {
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.message().contains("'tool'"), "{error}");
        assert!(error.message().len() < 700, "{error}");
        error.to_string()
    })
}

fn typed<T: JsonSchema + serde::de::DeserializeOwned>() -> CompiledSchema {
    let declaration = ToolDeclaration::new("tool", "")
        .with_parameters_json(parameters_schema::<T>())
        .unwrap();
    CompiledSchema::compile(&declaration).unwrap()
}

fn faults(schema: &CompiledSchema, arguments: &Value) -> Vec<String> {
    schema
        .faults(arguments)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn faults_in_words() {
    let schema = compile(&json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1, "maximum": 10},
            "either": {"type": ["string", "null"], "minLength": 2, "maxLength": 3},
            "unit": {"enum": ["C", "F"]},
            "mode": {"const": 1},
            "list": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 2, "uniqueItems": true},
            "word": {"pattern": "^a+$"},
            "a/b": {"type": "object", "properties": {"x~": {"type": "boolean"}}},
            "option": {"anyOf": [{"type": "object", "required": ["q"]}, {"type": "null"}]},
            "alternatives": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "never": false,
            "step": {"multipleOf": 5},
        },
        "required": ["id"],
        "additionalProperties": false,
    }))
    .unwrap();
    let cases = [
        (json!({}), "/id is required"),
        (json!({"id": "1"}), "/id must be an integer, not a string"),
        (
            json!({"id": 1.5}),
            "/id must be an integer, not a number with a fraction",
        ),
        (json!({"id": null}), "/id must be an integer, not null"),
        (json!({"id": 0}), "/id must be at least 1"),
        (json!({"id": 11}), "/id must be at most 10"),
        (
            json!({"id": 1, "either": 1}),
            "/either must be null or a string, not a number",
        ),
        (
            json!({"id": 1, "either": "a"}),
            "/either must have at least 2 characters",
        ),
        (
            json!({"id": 1, "either": "abcd"}),
            "/either must have at most 3 characters",
        ),
        (
            json!({"id": 1, "unit": "K"}),
            r#"/unit must be one of "C", "F""#,
        ),
        (json!({"id": 1, "mode": 2}), "/mode must be 1"),
        (
            json!({"id": 1, "list": []}),
            "/list must have at least 1 items",
        ),
        (
            json!({"id": 1, "list": [1, 2, 3]}),
            "/list must have at most 2 items",
        ),
        (
            json!({"id": 1, "list": [1, 1]}),
            "/list must have no item twice",
        ),
        (
            json!({"id": 1, "list": [1, "x"]}),
            "/list/1 must be a number, not a string",
        ),
        (
            json!({"id": 1, "word": "b"}),
            "/word must match the regular expression ^a+$",
        ),
        (
            json!({"id": 1, "a/b": {"x~": 1}}),
            "/a~1b/x~0 must be a boolean, not a number",
        ),
        (json!({"id": 1, "option": {}}), "/option/q is required"),
        (
            json!({"id": 1, "option": 1}),
            "/option must be an object or null, not a number",
        ),
        (
            json!({"id": 1, "alternatives": true}),
            "/alternatives must be a string or an integer, not a boolean",
        ),
        (json!({"id": 1, "never": 1}), "/never is not allowed"),
        (json!({"id": 1, "step": 7}), "/step must be a multiple of 5"),
        (
            json!({"id": 1, "z/": 1}),
            "/z~1 is not a known property (known: a/b, alternatives, either, id, list, mode, never, option, step, unit, word)",
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(faults(&schema, &arguments), [expected], "{arguments}");
    }
    assert!(faults(&schema, &json!({"id": 3, "option": null, "list": [1, 2.5]})).is_empty());
}

#[test]
fn faults_are_few_short_and_hold_no_values() {
    let schema = compile(&json!({
        "type": "object",
        "additionalProperties": {"type": "integer", "enum": (0..1000).collect::<Vec<_>>()},
    }))
    .unwrap();
    let secret = "sk-secret".repeat(500);
    let arguments: serde_json::Map<String, Value> = (0..500)
        .map(|n| (format!("{n}{}", "ö".repeat(500)), json!({"key": secret})))
        .collect();
    let faults = schema.faults(&arguments.into());
    assert_eq!(faults.len(), CompiledSchema::MAX_FAULTS);
    for fault in faults {
        assert!(!fault.to_string().contains("sk-secret"), "{fault}");
        assert!(fault.to_string().len() <= 321, "{fault}");
    }
}

#[test]
fn integers_of_64_bits_are_exact() {
    #[derive(Deserialize, JsonSchema)]
    struct Ids {
        #[expect(dead_code, reason = "only the schema is read")]
        unsigned: Option<u64>,
        #[expect(dead_code, reason = "only the schema is read")]
        signed: Option<i64>,
        #[expect(dead_code, reason = "only the schema is read")]
        byte: Option<u8>,
        #[expect(dead_code, reason = "only the schema is read")]
        short: Option<i16>,
    }
    let schema = typed::<Ids>();
    for arguments in [
        json!({"unsigned": u64::MAX, "signed": i64::MIN}),
        json!({"unsigned": 9_007_199_254_740_993_u64, "signed": i64::MAX, "byte": 255}),
        // The value is an integer, though it is written as a float.
        json!({"byte": 7.0}),
        json!({"byte": null, "short": i16::MIN}),
    ] {
        assert!(faults(&schema, &arguments).is_empty(), "{arguments}");
    }
    for arguments in [
        json!({"unsigned": -1}),
        json!({"byte": 256}),
        json!({"short": 32768}),
        json!({"signed": 0.5}),
        json!({"signed": "1"}),
    ] {
        assert_eq!(faults(&schema, &arguments).len(), 1, "{arguments}");
    }
    let exact = compile(&json!({"type": "object", "properties": {
        "most": {"const": u64::MAX}, "odd": {"maximum": 9_007_199_254_740_992_u64},
    }}))
    .unwrap();
    assert!(faults(&exact, &json!({"most": u64::MAX})).is_empty());
    assert_eq!(faults(&exact, &json!({"most": u64::MAX - 1})).len(), 1);
    assert_eq!(
        faults(&exact, &json!({"odd": 9_007_199_254_740_993_u64})).len(),
        1
    );
}

mod forms {
    #![expect(dead_code, reason = "only the schemas are read")]

    use super::{Deserialize, JsonSchema};

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Forms {
        pub(super) unit: Option<Unit>,
        pub(super) external: Option<External>,
        pub(super) internal: Option<Internal>,
        pub(super) adjacent: Option<Adjacent>,
        pub(super) untagged: Option<Untagged>,
        pub(super) tree: Option<Box<Tree>>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub(super) enum Unit {
        Red,
        /// With a description, which makes it another schema.
        Green,
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) enum External {
        Nothing,
        Size(u8),
        Point { x: i64, y: i64 },
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    pub(super) enum Internal {
        Circle { radius: f64, color: Unit },
        Square { width: f64 },
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "t", content = "c")]
    pub(super) enum Adjacent {
        Number(i64),
        Text(String),
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    pub(super) enum Untagged {
        Number(i64),
        Named { name: String },
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Tree {
        pub(super) value: i64,
        pub(super) children: Vec<Tree>,
    }
}

#[test]
fn enums_options_and_recursive_types() {
    let schema = typed::<forms::Forms>();
    for fits in [
        json!({}),
        json!({"unit": "red", "external": "Nothing", "untagged": 1, "tree": null}),
        json!({"unit": null, "external": {"Size": 3}, "untagged": {"name": "x"}}),
        json!({"external": {"Point": {"x": 1, "y": 2}}, "adjacent": {"t": "Text", "c": "x"}}),
        json!({"internal": {"kind": "circle", "radius": 1, "color": "green"}}),
        json!({"tree": {"value": 1, "children": [{"value": 2, "children": []}]}}),
    ] {
        assert_eq!(faults(&schema, &fits), Vec::<String>::new(), "{fits}");
        serde_json::from_value::<forms::Forms>(fits).unwrap_or_else(|error| panic!("{error}"));
    }
    for (arguments, expected) in [
        (
            json!({"unit": "blue"}),
            r#"/unit must be one of "red", "green""#,
        ),
        (
            json!({"external": {"Size": 300}}),
            "/external/Size must be at most 255",
        ),
        (
            json!({"external": {"Point": {"x": 1}}}),
            "/external/Point/y is required",
        ),
        (
            json!({"internal": {"kind": "circle", "radius": "x", "color": "red"}}),
            "/internal/radius must be a number, not a string",
        ),
        (
            json!({"internal": {"kind": "circle", "radius": 1, "color": "blue"}}),
            r#"/internal/color must be one of "red", "green""#,
        ),
        (
            json!({"internal": {"kind": "hexagon"}}),
            r#"/internal/kind must be one of "circle", "square""#,
        ),
        (
            json!({"internal": {"radius": 1}}),
            "/internal/kind is required",
        ),
        (
            json!({"adjacent": {"t": "Number", "c": "x"}}),
            "/adjacent/c must be an integer, not a string",
        ),
        (json!({"untagged": {}}), "/untagged/name is required"),
        (
            json!({"tree": {"value": 1, "children": [{"value": "x", "children": []}]}}),
            "/tree/children/0/value must be an integer, not a string",
        ),
    ] {
        let found = faults(&schema, &arguments);
        assert_eq!(
            found.first().map(String::as_str),
            Some(expected),
            "{arguments}: {found:?}"
        );
    }
}

#[test]
fn schemas_that_are_none() {
    let cases = [
        (json!({"type": "objekt"}), "\"type\": \"objekt\""),
        (json!({"type": "string"}), "arguments are always an object"),
        (json!(true), "must be a JSON object, not a boolean"),
        (
            json!({"type": "object", "properties": {"a": {"type": "strin"}}}),
            "/properties/a/type",
        ),
        (json!({"type": "object", "properties": []}), "/properties"),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}}),
            "nothing is fetched",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "nothing is fetched",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "other.json"}}}),
            "nothing is fetched",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}),
            "nothing of that name",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$id": "x", "type": "string"}}}),
            "not supported",
        ),
        (
            json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
            "/properties/a/pattern",
        ),
        (
            json!({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}}),
            "/properties/a/pattern",
        ),
        (
            json!({"type": "object", "properties": {"a": {"pattern": r"(a)\1"}}}),
            "/properties/a/pattern",
        ),
        (
            json!({"type": "object", "patternProperties": {"(": {}}}),
            "/patternProperties",
        ),
    ];
    for (schema, expected) in cases {
        let error = compile(&schema).map(|_| "none").unwrap_err();
        assert!(error.contains(expected), "{schema}: {error}");
    }
}

/// Most programs never compile the validator: their models keep to plain schemas.
#[test]
fn the_validator_of_a_plain_schema_is_compiled_when_something_seems_not_to_fit() {
    let plain = typed::<forms::Forms>();
    let fits =
        json!({"unit": "red", "external": {"Size": 3}, "tree": {"value": 1, "children": []}});
    assert!(faults(&plain, &fits).is_empty());
    assert!(plain.0.validator.get().is_none());
    // It seems only: a float can be an integer.
    assert!(faults(&plain, &json!({"untagged": 7.0})).is_empty());
    assert!(plain.0.validator.get().is_some());

    let other = compile(&json!({"type": "object", "properties": {"a": {"pattern": "^a$"}}}));
    assert!(other.unwrap().0.validator.get().is_some());
}

#[test]
fn drafts() {
    for uri in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
        "https://example.com/my-own-dialect",
    ] {
        let schema = compile(&json!({
            "$schema": uri,
            "$id": "https://example.com/tool.json",
            "type": "object",
            "properties": {"n": {"$ref": "#/definitions/n"}},
            "definitions": {"n": {"type": "integer"}},
        }));
        assert_eq!(
            faults(&schema.unwrap(), &json!({"n": "x"})).len(),
            1,
            "{uri}"
        );
    }
    let tuples = compile(&json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"items": [{"type": "integer"}, {"type": "string"}]}},
    }))
    .unwrap();
    assert_eq!(
        faults(&tuples, &json!({"pair": [1, 2]})),
        ["/pair/1 must be a string, not a number"]
    );
}

/// Schemas of strangers that ask for too much are refused, at once.
#[test]
fn hostile_schemas_are_refused() {
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"properties": {"a": deep}});
    }
    let wide: Vec<Value> = (0..30_000).map(|n| json!(n)).collect();
    let doubling: serde_json::Map<String, Value> = (0..60)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", (n + 1).min(59))});
            let schema = if n == 59 {
                json!({})
            } else {
                json!({"allOf": [next, next]})
            };
            (format!("d{n}"), schema)
        })
        .collect();
    let chain: serde_json::Map<String, Value> = (0..5000)
        .map(|n| {
            let schema = if n == 4999 {
                json!({})
            } else {
                json!({"$ref": format!("#/$defs/d{}", n + 1)})
            };
            (format!("d{n}"), schema)
        })
        .collect();
    let patterns: Vec<Value> = (0..100)
        .map(|n| json!({"pattern": format!("a{n}")}))
        .collect();
    for (case, schema) in [
        ("deep", deep),
        ("wide", json!({"enum": wide})),
        ("large", json!({"description": "x".repeat(300_000)})),
        (
            "doubling",
            json!({"$defs": doubling, "allOf": [{"$ref": "#/$defs/d0"}]}),
        ),
        (
            "chain",
            json!({"$defs": chain, "allOf": [{"$ref": "#/$defs/d0"}]}),
        ),
        ("itself", json!({"$ref": "#"})),
        (
            "itself within allOf",
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        ),
        (
            "each other",
            json!({"$ref": "#/$defs/a", "$defs": {
                "a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}},
            }}),
        ),
        ("patterns", json!({"allOf": patterns})),
        ("a long pattern", json!({"pattern": "a".repeat(600)})),
        ("a huge pattern", json!({"pattern": "((a{999}){999}){999}"})),
    ] {
        let begin = Instant::now();
        assert!(compile(&schema).is_err(), "{case}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{case}");
    }
    let raw = format!("{}1{}", r#"{"a":"#.repeat(500), "}".repeat(500));
    ToolDeclaration::new("tool", "")
        .with_parameters_json(raw)
        .unwrap_err();
}

/// What passes is checked in bounded time, whatever the arguments.
#[test]
fn hostile_arguments_are_refused() {
    let catastrophic = compile(&json!({"type": "object", "properties": {
        "a": {"pattern": "^(a+)+$"}, "b": {"pattern": "^(a|a)*b$"}, "c": {"pattern": "(.*)*(.*)*x"},
    }}))
    .unwrap();
    let long = "a".repeat(50_000) + "!";
    let twice = compile(&json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
        "allOf": [{"properties": {"next": {"$ref": "#"}}}],
    }))
    .unwrap();
    let unevaluated = compile(&json!({
        "type": "object",
        "anyOf": [{"properties": {"next": {"$ref": "#"}}}, {"properties": {"next": {"$ref": "#"}}}],
        "unevaluatedProperties": false,
    }))
    .unwrap();
    let untagged = compile(
        &json!({"$ref": "#/$defs/e", "type": "object", "$defs": {"e": {"anyOf": [
            {"properties": {"k": {"const": 1}, "next": {"$ref": "#/$defs/e"}}},
            {"properties": {"k": {"const": 2}, "next": {"$ref": "#/$defs/e"}}},
            {"properties": {"k": {"const": 3}, "next": {"$ref": "#/$defs/e"}}},
        ]}}}),
    )
    .unwrap();
    let tree = json!({"type": "object", "properties": {"children": {"items": {"$ref": "#"}}}});
    let tree = compile(&tree).unwrap();
    let large = json!({"children": vec![json!({"children": vec![json!({}); 500]}); 500]});
    let nested =
        |levels: usize| (0..levels).fold(json!({"k": 9}), |next, _| json!({"k": 9, "next": next}));
    for (case, schema, arguments, is_told) in [
        (
            "patterns",
            &catastrophic,
            json!({"a": long, "b": long, "c": long}),
            "regular expression",
        ),
        (
            "deep",
            &catastrophic,
            nested(100),
            "nested deeper than 64 levels",
        ),
        (
            "alternatives",
            &untagged,
            nested(40),
            "too deep to say where",
        ),
        ("large", &tree, large, "cannot be checked"),
    ] {
        let begin = Instant::now();
        let found = faults(schema, &arguments);
        assert!(begin.elapsed() < Duration::from_secs(5), "{case}");
        assert!(found[0].contains(is_told), "{case}: {found:?}");
    }
    let fitting = (0..60).fold(json!({"k": 1}), |next, _| json!({"k": 3, "next": next}));
    for (case, schema, arguments) in [
        ("twice at each level", &twice, nested(60)),
        ("unevaluated", &unevaluated, json!({"next": {"next": {}}})),
        ("alternatives", &untagged, fitting),
    ] {
        let begin = Instant::now();
        assert_eq!(faults(schema, &arguments), Vec::<String>::new(), "{case}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{case}");
    }
    assert_eq!(faults(&unevaluated, &nested(60)).len(), 1);
    assert!(faults(&untagged, &nested(5))[0].starts_with('/'));
}

/// The deepest that is let through fits the stack of a worker thread.
#[test]
fn the_stack_holds_what_is_let_through() {
    let wrapped = (0..20).fold(json!({"$ref": "#"}), |schema, _| json!({"anyOf": [schema]}));
    let schema =
        compile(&json!({"type": "object", "properties": {"next": wrapped}, "required": ["end"]}))
            .unwrap();
    let nested =
        |levels: usize| (0..levels).fold(json!({}), |next, _| json!({"end": 1, "next": next}));
    let thread = std::thread::Builder::new().stack_size(1024 * 1024);
    let checked = thread.spawn(move || {
        for levels in 0..62 {
            assert!(!faults(&schema, &nested(levels)).is_empty());
        }
    });
    checked.unwrap().join().unwrap();
}
