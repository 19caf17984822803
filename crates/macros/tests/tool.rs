//! What `#[tool]` makes of functions.

use raf_macros::tool;
use raf_tools as renamed;
use raf_tools::{
    ExecuteError, FunctionTool, ITool, ToolContext, ToolError, ToolOutput, ToolRegistry,
};
use serde_json::{Value, json};

async fn run(tool: FunctionTool, arguments: Value) -> Result<String, ExecuteError> {
    let name = tool.name().to_owned();
    let registry = ToolRegistry::builder().with_tool(tool).build();
    let registry = registry.expect("the tool is good");
    let output = registry.execute(&name, arguments).await?;
    Ok(format!("{output:?}"))
}

/// Tells the weather.
///
/// Of today, or of later.
#[tool]
async fn weather(
    /// The name of a city.
    city: String,
    /// How many days ahead.
    days: Option<u8>,
) -> String {
    format!("sunny in {city} in {}", days.unwrap_or(0))
}

#[tokio::test]
async fn docs_are_descriptions_and_options_may_be_left_out() {
    let declaration = weather().declaration().clone();
    assert_eq!(declaration.name(), "weather");
    assert_eq!(
        declaration.description(),
        "Tells the weather.\n\nOf today, or of later."
    );
    assert_eq!(
        declaration.parameters_json().get(),
        r#"{"type":"object","properties":{"city":{"type":"string","description":"The name of a city."},"days":{"type":["integer","null"],"description":"How many days ahead.","maximum":255,"minimum":0}},"required":["city"]}"#
    );
    let output = run(weather(), json!({"city": "Oslo"})).await.unwrap();
    assert_eq!(output, r#"Text("sunny in Oslo in 0")"#);
    let refused = run(weather(), json!({"city": 1})).await.unwrap_err();
    assert!(matches!(refused, ExecuteError::InvalidArguments(_)));
}

/// Types of the user's own, with the user's own derives through the re-exports.
#[derive(renamed::__private::serde::Deserialize, renamed::schemars::JsonSchema)]
#[serde(crate = "renamed::__private::serde", rename_all = "lowercase")]
#[schemars(crate = "renamed::schemars")]
enum Unit {
    Celsius,
    Kelvin,
}

#[tool(
    name = "convert-2",
    description = "Converts.",
    approval,
    idempotent,
    exclusive,
    crate = renamed
)]
pub(crate) async fn convert(
    #[schemars(range(min = 1))] mut degrees: i64,
    context: ToolContext,
    #[serde(rename = "from")] unit: Unit,
    #[serde(default)] round: bool,
) -> Result<ToolOutput, ToolError> {
    assert!(!round);
    degrees += match unit {
        Unit::Celsius => 273,
        Unit::Kelvin => -273,
    };
    ToolOutput::json((context.tool_name(), degrees))
}

#[tokio::test]
async fn settings_context_and_attributes_of_parameters() {
    let tool = convert();
    assert_eq!(
        (tool.name(), tool.declaration().description()),
        ("convert-2", "Converts.")
    );
    assert!(tool.requires_approval() && tool.limits().idempotent && tool.limits().exclusive);
    let schema = tool.declaration().parameters();
    assert_eq!(schema["required"], json!(["degrees", "from"]));
    assert_eq!(schema["properties"]["degrees"]["minimum"], 1);

    let arguments = json!({"degrees": 1, "from": "kelvin"});
    let context = ToolContext::builder("c1", "convert-2").build();
    let output = tool
        .call(context, arguments.as_object().unwrap().clone())
        .await
        .unwrap();
    assert_eq!(
        format!("{output:?}"),
        r#"Json(Array [String("convert-2"), Number(-272)])"#
    );
}

/// Counts down.
#[tool]
async fn count_down(from: u8) -> Result<Vec<u8>, std::io::Error> {
    if from == 0 {
        return Ok(Vec::new());
    }
    let mut rest = Box::pin(count_down(from - 1)).await?;
    rest.insert(0, from);
    Ok(rest)
}

/// Does nothing.
#[tool]
async fn nothing() {}

/// Says who asks.
#[tool]
async fn who(_: ToolContext) -> &'static str {
    "you"
}

#[tokio::test]
async fn forms_of_functions() {
    assert_eq!(run(nothing(), json!({})).await.unwrap(), "Void");
    assert_eq!(run(who(), json!(null)).await.unwrap(), r#"Text("you")"#);
    let counted = run(count_down(), json!({"from": 2})).await.unwrap();
    assert_eq!(counted, "Json(Array [Number(2), Number(1)])");
}

raf_testing::tool_contract!(
    made_by_macro: FunctionTool, weather,
    valid: json!({"city": "Oslo", "days": 2}), invalid: json!({"city": "Oslo", "days": "two"})
);

/// What cannot be a tool is an error that points at the user's code.
#[test]
fn compile_errors() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
