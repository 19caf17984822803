//! Typed and dynamic tools: schemas, return values, errors, settings.

use std::collections::BTreeMap;

use raf_core::{Content, ToolDeclaration, TrustLabel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    FunctionTool, IntoToolOutput, Json, dynamic_tool, parameters_schema, tool_fn,
    tool_fn_with_context,
};
use crate::{ExecuteError, ITool, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolRegistry};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    b: i64,
    /// The second number.
    a: Option<i64>,
}

async fn run(tool: FunctionTool, arguments: Value) -> Result<ToolOutput, ExecuteError> {
    let name = tool.name().to_owned();
    let registry = ToolRegistry::builder().with_tool(tool).build().unwrap();
    registry.execute(&name, arguments).await
}

fn shown(output: &ToolOutput) -> String {
    format!("{output:?}")
}

#[tokio::test]
async fn a_closure_in_one_line() {
    let add = tool_fn("add", "Adds.", |args: Add| async move {
        args.a.unwrap_or(1) + args.b
    });
    assert_eq!(
        add.declaration().parameters_json().get(),
        r#"{"type":"object","properties":{"b":{"type":"integer","description":"The first number."},"a":{"type":["integer","null"],"description":"The second number."}},"required":["b"]}"#
    );
    let sum = run(add.clone(), json!({"b": 2})).await.unwrap();
    assert_eq!(shown(&sum), "Json(Number(3))");
    let sum = run(add.clone(), json!({"b": 2, "a": null})).await.unwrap();
    assert_eq!(shown(&sum), "Json(Number(3))");
    let refused = run(add, json!({"a": "x"})).await.unwrap_err();
    assert!(matches!(refused, ExecuteError::InvalidArguments(_)));
}

#[tokio::test]
async fn tools_without_arguments() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing;
    #[derive(Deserialize, JsonSchema)]
    struct Empty {}

    let none = r#"{"type":"object","properties":{}}"#;
    let unit = tool_fn("unit", "", |(): ()| async { "x" });
    assert_eq!(unit.declaration().parameters_json().get(), none);
    let nothing = tool_fn("nothing", "", |_: Nothing| async { "x" });
    assert_eq!(nothing.declaration().parameters_json().get(), none);
    let empty = tool_fn("empty", "", |_: Empty| async { "x" });
    for tool in [unit, nothing, empty] {
        for arguments in [json!({}), json!(null), json!({"unasked": 1})] {
            run(tool.clone(), arguments).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_context_and_a_named_function() {
    async fn who(context: ToolContext, (): ()) -> Result<String, std::io::Error> {
        Ok(format!("{} {}", context.tool_name(), context.attempt()))
    }
    let output = run(tool_fn_with_context("who", "", who), json!({}))
        .await
        .unwrap();
    assert_eq!(shown(&output), "Text(\"who 1\")");
}

#[tokio::test]
async fn a_dynamic_tool_gets_what_passed_its_schema() {
    let declaration = ToolDeclaration::new("echo", "Says it again.")
        .with_parameters(&json!({"type": "object", "required": ["text"]}));
    let echo = dynamic_tool(declaration, |_, arguments| async move {
        arguments["text"].clone()
    });
    let output = run(echo.clone(), json!({"text": "hm"})).await.unwrap();
    assert_eq!(shown(&output), "Text(\"hm\")");
    run(echo, json!({})).await.unwrap_err();
}

#[test]
fn return_values() {
    #[derive(Serialize)]
    struct Report {
        sunny: bool,
    }
    #[derive(Serialize)]
    enum Weather {
        Sunny,
    }
    type Any = Result<ToolOutput, ToolError>;
    let parts = vec![Content::text("x")];
    let cases: Vec<(&str, Any, &str)> = vec![
        ("unit", ().into_tool_output(), "Void"),
        ("text", "a \"b\"".into_tool_output(), r#"Text("a \"b\"")"#),
        (
            "string",
            String::from("s").into_tool_output(),
            r#"Text("s")"#,
        ),
        ("number", 7_u64.into_tool_output(), "Json(Number(7))"),
        (
            "most",
            u64::MAX.into_tool_output(),
            "Json(Number(18446744073709551615))",
        ),
        ("none", None::<i32>.into_tool_output(), "Json(Null)"),
        (
            "list",
            vec![1, 2].into_tool_output(),
            "Json(Array [Number(1), Number(2)])",
        ),
        (
            "map",
            BTreeMap::from([("a", 1)]).into_tool_output(),
            r#"Json(Object {"a": Number(1)})"#,
        ),
        (
            "struct",
            Json(Report { sunny: true }).into_tool_output(),
            r#"Json(Object {"sunny": Bool(true)})"#,
        ),
        (
            "unit variant",
            Json(Weather::Sunny).into_tool_output(),
            r#"Text("Sunny")"#,
        ),
        ("ok unit", Ok::<_, ToolError>(()).into_tool_output(), "Void"),
        (
            "ok struct",
            Ok::<_, String>(Report { sunny: true }).into_tool_output(),
            r#"Json(Object {"sunny": Bool(true)})"#,
        ),
        (
            "ok output",
            Ok::<_, String>(ToolOutput::text("x")).into_tool_output(),
            r#"Text("x")"#,
        ),
        ("value", json!(null).into_tool_output(), "Json(Null)"),
    ];
    for (case, output, expected) in cases {
        assert_eq!(shown(&output.unwrap()), expected, "{case}");
    }
    for output in [
        parts.clone().into_tool_output(),
        Ok::<_, String>(parts).into_tool_output(),
    ] {
        assert!(matches!(output.unwrap(), ToolOutput::Parts(parts) if parts.len() == 1));
    }
    let stream = ToolOutput::stream(futures::stream::empty());
    assert!(matches!(
        stream.into_tool_output(),
        Ok(ToolOutput::Stream(_))
    ));
}

#[test]
fn errors_keep_what_the_model_may_read() {
    let own: Result<(), Box<dyn std::error::Error + Send + Sync>> =
        Err(ToolError::permission_denied("not yours").into());
    let error = own.into_tool_output().unwrap_err();
    assert_eq!(error.kind(), ToolErrorKind::PermissionDenied);
    assert!(error.is_model_visible());

    for error in [
        Err::<(), _>("secret").into_tool_output().unwrap_err(),
        Err::<(), _>(String::from("secret"))
            .into_tool_output()
            .unwrap_err(),
        Err::<(), _>(std::io::Error::other("secret"))
            .into_tool_output()
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ToolErrorKind::ExecutionFailed);
        assert!(!error.is_model_visible());
    }

    let map = std::collections::HashMap::from([(vec![1], 1)]);
    let error = Json(map).into_tool_output().unwrap_err();
    assert!(!error.is_model_visible(), "{error}");
}

#[tokio::test]
async fn what_a_type_refuses_beyond_its_schema_is_invalid_parameters() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(try_from = "u32")]
    #[schemars(with = "u32")]
    struct Even(#[expect(dead_code, reason = "only made")] u32);
    impl TryFrom<u32> for Even {
        type Error = String;
        fn try_from(number: u32) -> Result<Self, String> {
            if number.is_multiple_of(2) {
                Ok(Self(number))
            } else {
                Err("must be even".repeat(500))
            }
        }
    }
    #[derive(Deserialize, JsonSchema)]
    struct Args {
        #[expect(dead_code, reason = "only read by the schema")]
        number: Even,
    }
    let tool = tool_fn("even", "", |_: Args| async {});
    let error = run(tool.clone(), json!({"number": 3})).await.unwrap_err();
    let ExecuteError::Tool(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), ToolErrorKind::InvalidParameters);
    assert!(error.message().starts_with("must be even") && error.message().len() <= 512);
    run(tool, json!({"number": 2})).await.unwrap();
}

#[test]
fn settings() {
    let tool = tool_fn("t", "", |(): ()| async {})
        .with_approval()
        .idempotent()
        .exclusive()
        .with_deadline(std::time::Duration::from_secs(1))
        .with_concurrency(2)
        .with_trust(TrustLabel::Trusted)
        .with_strict(true);
    assert!(tool.requires_approval());
    assert_eq!(tool.trust(), TrustLabel::Trusted);
    let limits = tool.limits();
    assert!(limits.idempotent && limits.exclusive && limits.concurrency == Some(2));
    assert_eq!(tool.declaration().strict(), Some(true));
}

/// The names of properties in a schema text, in order, however deep.
fn names_in_order(text: &str) -> Vec<String> {
    use serde::de::{MapAccess, Visitor};
    struct InOrder(Vec<(String, Box<serde_json::value::RawValue>)>);
    impl<'de> Deserialize<'de> for InOrder {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Entries;
            impl<'de> Visitor<'de> for Entries {
                type Value = InOrder;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
                    let mut entries = Vec::new();
                    while let Some(entry) = map.next_entry()? {
                        entries.push(entry);
                    }
                    Ok(InOrder(entries))
                }
            }
            deserializer.deserialize_map(Entries)
        }
    }
    fn collect(text: &str, is_properties: bool, names: &mut Vec<String>) {
        if let Ok(InOrder(entries)) = serde_json::from_str(text) {
            for (name, value) in entries {
                if is_properties {
                    names.push(name.clone());
                }
                collect(value.get(), !is_properties && name == "properties", names);
            }
        } else if let Ok(items) =
            serde_json::from_str::<Vec<Box<serde_json::value::RawValue>>>(text)
        {
            for item in items {
                collect(item.get(), false, names);
            }
        }
    }
    let mut names = Vec::new();
    collect(text, false, &mut names);
    names
}

mod ordered {
    #![expect(dead_code, reason = "only the schemas are read")]

    use std::collections::HashMap;

    use super::{Deserialize, JsonSchema, Value};

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct Renamed {
        zoo_name: String,
        #[serde(rename = "first")]
        later: u8,
        #[serde(default)]
        and_then: Option<Vec<Nested>>,
        #[serde(skip)]
        never: u8,
        by_key: HashMap<String, Deeper>,
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Nested {
        y: f64,
        x: Even,
        deeper: Box<Deeper>,
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Deeper {
        q: char,
        p: Value,
    }

    /// Its made-up value is refused.
    #[derive(Deserialize, JsonSchema)]
    #[serde(try_from = "u32")]
    #[schemars(with = "u32")]
    pub(super) struct Even(u32);
    impl TryFrom<u32> for Even {
        type Error = &'static str;
        fn try_from(_: u32) -> Result<Self, Self::Error> {
            Err("never")
        }
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Tree {
        value: i64,
        more: Option<Box<Tree>>,
        children: Vec<Tree>,
        about: Deeper,
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Formula {
        title: String,
        expression: Expression,
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) enum Expression {
        Zero,
        Not(Box<Expression>),
        Pair(Box<Expression>, Box<Expression>),
        Sum {
            right: Box<Expression>,
            left: Box<Expression>,
        },
        About(Deeper),
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Flat {
        z: u8,
        #[serde(flatten)]
        deeper: Deeper,
        a: Option<u8>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    pub(super) enum Tagged {
        Circle { radius: f64, at: Option<u8> },
        Square { width: f64, angle: f64 },
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Shapes {
        tagged: Tagged,
        deeper: Deeper,
    }
}

#[test]
fn properties_stand_in_field_order() {
    fn check<T: JsonSchema + serde::de::DeserializeOwned>(expected: &[&str]) {
        let text = parameters_schema::<T>();
        serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(names_in_order(&text), expected, "{text}");
    }
    check::<ordered::Renamed>(&[
        "zooName", "first", "andThen", "y", "x", "deeper", "q", "p", "byKey", "q", "p",
    ]);
    check::<ordered::Tree>(&["value", "more", "children", "about", "q", "p"]);
    check::<ordered::Formula>(&[
        "title",
        "expression",
        "Not",
        "Pair",
        "Sum",
        "right",
        "left",
        "About",
        "q",
        "p",
    ]);
    // Not seen by the walk: required ones first, in their order.
    check::<ordered::Flat>(&["z", "q", "p", "a"]);
    check::<ordered::Shapes>(&[
        "tagged", "kind", "radius", "at", "kind", "width", "angle", "deeper", "q", "p",
    ]);
}
