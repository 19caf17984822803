//! Every tool of this crate holds the contract of tools.

use std::sync::Arc;

use raf_core::{ChatMessage, Content, MediaContent, ToolCall, ToolDeclaration};
use raf_macros::tool;
use raf_testing::tool_contract;
use raf_tools::{
    ApprovalRequiredTool, ExecuteOptions, FunctionTool, ITool, Json, KindTool, ToolContext,
    ToolError, ToolExecutor, ToolOutput, ToolRegistry, dynamic_tool, tool_fn, tool_fn_with_context,
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

fn declaration() -> ToolDeclaration {
    ToolDeclaration::new("weather", "Tells the weather.").with_parameters(
        &json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
    )
}

fn map() -> Content {
    Content::Image(MediaContent::base64("AA==", "image/png"))
}

fn invokable() -> KindTool {
    KindTool::invokable(declaration(), |_, arguments| async move {
        Ok(json!({"sunny in": arguments["city"]}))
    })
    .build()
}

fn streamable() -> KindTool {
    KindTool::streamable(declaration(), |_, _| async {
        let pieces = ["sun", "ny"].map(|piece| Ok(piece.to_owned()));
        Ok(futures::stream::iter(pieces))
    })
    .build()
}

fn without_pieces() -> KindTool {
    KindTool::streamable(declaration(), |_, _| async { Ok(futures::stream::empty()) }).build()
}

fn enhanced_invokable() -> KindTool {
    KindTool::enhanced_invokable(declaration(), |_, _| async {
        Ok(vec![Content::text("sunny"), map()])
    })
    .build()
}

fn enhanced_streamable() -> KindTool {
    KindTool::enhanced_streamable(declaration(), |_, _| async {
        let pieces = [Content::text("sun"), Content::text("ny"), map(), map()];
        Ok(futures::stream::iter(pieces.map(Ok)))
    })
    .build()
}

/// Tells the weather.
#[tool]
async fn weather(
    /// The name of a city.
    city: String,
) -> String {
    format!("sunny in {city}")
}

/// A tool whose body is an executor of its own.
fn nested() -> FunctionTool {
    let registry = ToolRegistry::builder().with_tool(typed()).build();
    let inner = ToolExecutor::new(registry.expect("the name is good"));
    dynamic_tool(declaration(), move |context: ToolContext, arguments| {
        let inner = inner.clone();
        async move {
            let arguments = arguments.to_string();
            let call = ToolCall::new(context.call_id(), "weather", arguments);
            let options = ExecuteOptions::new()
                .with_parent_run_id(context.run_id().clone())
                .with_cancellation(context.cancellation().child());
            let execution = inner
                .execute(&ChatMessage::assistant_calls([call]), options)
                .await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(execution.results[0].text())
        }
    })
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
tool_contract!(
    invokable_kind: KindTool, invokable,
    valid: json!({"city": "Oslo"}), invalid: json!({"city": 7})
);
tool_contract!(
    streamable_kind: KindTool, streamable,
    valid: json!({"city": "Oslo"}), invalid: json!({})
);
tool_contract!(
    streamable_kind_without_pieces: KindTool, without_pieces,
    valid: json!({"city": "Oslo"}), invalid: json!({})
);
tool_contract!(
    enhanced_invokable_kind: KindTool, enhanced_invokable,
    valid: json!({"city": "Oslo"}), invalid: json!({"city": null})
);
tool_contract!(
    enhanced_streamable_kind: KindTool, enhanced_streamable,
    valid: json!({"city": "Oslo"}), invalid: json!({"city": []})
);
tool_contract!(
    gated_kind: ApprovalRequiredTool, || ApprovalRequiredTool::new(enhanced_streamable()),
    valid: json!({"city": "Oslo"}), invalid: json!({"city": []})
);
tool_contract!(
    macro_made: FunctionTool, weather,
    valid: json!({"city": "Oslo"}), invalid: json!({"city": 1})
);
tool_contract!(
    executor_backed: FunctionTool, nested,
    valid: json!({"city": "Oslo"}), invalid: json!({"city": 1})
);
