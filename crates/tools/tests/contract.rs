//! Every tool of this crate holds the contract of tools.

use std::sync::Arc;

use raf_core::ToolDeclaration;
use raf_testing::tool_contract;
use raf_tools::{
    ApprovalRequiredTool, FunctionTool, ITool, Json, ToolContext, ToolError, ToolOutput,
    ToolRegistry, dynamic_tool, tool_fn, tool_fn_with_context,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, Serialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
    /// A country, if the name alone is not enough.
    country: Option<String>,
}

fn typed() -> FunctionTool {
    tool_fn("weather", "Tells the weather.", |place: Place| async move {
        Ok::<_, ToolError>(format!("sunny in {}", place.city))
    })
}

fn with_context() -> FunctionTool {
    async fn weather(context: ToolContext, place: Place) -> Result<Place, ToolError> {
        context.progress("looking out of the window");
        tokio::task::yield_now().await;
        Ok(place)
    }
    tool_fn_with_context("weather", "Tells the weather.", weather)
}

fn streamed() -> FunctionTool {
    tool_fn("weather", "Tells the weather.", |_: Place| async move {
        let pieces = ["sun", "ny"].map(|piece| Ok(piece.into()));
        ToolOutput::stream(futures::stream::iter(pieces))
    })
}

fn dynamic() -> FunctionTool {
    let declaration = ToolDeclaration::new("weather", "Tells the weather.").with_parameters(
        &json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
    );
    dynamic_tool(declaration, |_, arguments| async move { Json(arguments) })
}

fn gated() -> ApprovalRequiredTool {
    ApprovalRequiredTool::new(typed())
}

fn renamed() -> Arc<dyn ITool> {
    let registry = ToolRegistry::builder().with_tool(gated()).build();
    let renamed = registry.and_then(|registry| registry.namespaced("outside"));
    let renamed = renamed.expect("the name is good");
    assert!(
        renamed.tools()[0].tool().requires_approval(),
        "nothing loses its gate on the way"
    );
    Arc::clone(renamed.tools()[0].tool())
}

tool_contract!(
    typed_tool: FunctionTool, typed,
    valid: json!({"city": "Oslo", "country": null}), invalid: json!({"city": 1})
);
tool_contract!(
    tool_with_context: FunctionTool, with_context,
    valid: json!({"city": "Oslo"}), invalid: json!({})
);
tool_contract!(
    streamed_tool: FunctionTool, streamed,
    valid: json!({"city": "Oslo"}), invalid: json!({"city": null})
);
tool_contract!(
    dynamic_tool_: FunctionTool, dynamic,
    valid: json!({"city": "Oslo", "more": [1]}), invalid: json!({"city": ["Oslo"]})
);
tool_contract!(
    gated_tool: ApprovalRequiredTool, gated,
    valid: json!({"city": "Oslo"}), invalid: json!({"town": "Oslo"})
);
tool_contract!(
    renamed_tool: RenamedTool, renamed,
    valid: json!({"city": "Oslo"}), invalid: json!({"city": false})
);
