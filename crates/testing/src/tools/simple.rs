//! The five tools that most tests need, ready made.

use async_trait::async_trait;
use raf_core::{ToolDeclaration, TrustLabel};
use raf_tools::{ITool, ToolArguments, ToolContext, ToolError, ToolLimits, ToolOutput};
use serde_json::json;

use super::{Behaviour, ScriptedTool, ToolLog};

macro_rules! simple_tool {
    ($(#[$docs:meta])* $name:ident, $tool:expr) => {
        $(#[$docs])*
        #[derive(Clone, Debug)]
        pub struct $name(ScriptedTool);

        impl $name {
            /// The tool under its usual name.
            pub fn new() -> Self {
                Self($tool)
            }

            /// The tool under another name.
            pub fn named(name: impl Into<String>) -> Self {
                let tool: ScriptedTool = $tool;
                let declaration = tool.declaration().clone().with_name(name);
                Self(tool.with_declaration(declaration))
            }

            /// How it was called.
            pub fn log(&self) -> &ToolLog {
                self.0.log()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl ITool for $name {
            fn declaration(&self) -> &ToolDeclaration {
                self.0.declaration()
            }

            async fn call(
                &self,
                context: ToolContext,
                arguments: ToolArguments,
            ) -> Result<ToolOutput, ToolError> {
                self.0.call(context, arguments).await
            }

            fn name(&self) -> &str {
                self.0.name()
            }

            fn requires_approval(&self) -> bool {
                self.0.requires_approval()
            }

            fn limits(&self) -> ToolLimits {
                self.0.limits()
            }

            fn trust(&self) -> TrustLabel {
                self.0.trust()
            }
        }
    };
}

simple_tool!(
    /// `echo`: takes a `text` and returns it.
    EchoTool,
    ScriptedTool::new("echo")
        .with_parameters(&json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }))
        .always(Behaviour::custom(|_, arguments| async move {
            let text = arguments.get("text").and_then(|text| text.as_str());
            Ok(ToolOutput::text(text.unwrap_or_default()))
        }))
);

simple_tool!(
    /// `fail`: fails with a text that the model must not read ([`FailingTool::SECRET`]).
    FailingTool,
    ScriptedTool::new("fail").always(Behaviour::execution_failed(FailingTool::SECRET))
);

impl FailingTool {
    /// What it fails with: no request and no update may hold it.
    pub const SECRET: &str = "database password hunter2 at 10.0.0.5";
}

simple_tool!(
    /// `panic`: panics.
    PanickingTool,
    ScriptedTool::new("panic").always(Behaviour::panics("a scripted panic"))
);

simple_tool!(
    /// `hang`: never returns, whatever the token says.
    HangingTool,
    ScriptedTool::new("hang").always(Behaviour::hang())
);

simple_tool!(
    /// `count`: returns how often it was entered, this time included.
    CountingTool,
    counting()
);

fn counting() -> ScriptedTool {
    let tool = ScriptedTool::new("count");
    let log = tool.log().clone();
    tool.always(Behaviour::returns(move || {
        ToolOutput::Json(log.entries().into())
    }))
}
