//! The form of tools in Chat Completions.

use std::sync::Arc;

use raf_core::{ChatMessage, Result, ToolDeclaration};
use raf_wire::{RenderedTools, ToolRules, ToolsCache, WireTool, push_string};

use crate::dialect::Rules;

/// The tools as the dialect wants them.
///
/// # Errors
/// Two different tools of one name.
pub(crate) fn rendered(
    tools: &[ToolDeclaration],
    messages: &[ChatMessage],
    rules: &Rules,
    cache: &ToolsCache,
) -> Result<Arc<RenderedTools>> {
    if tools.is_empty() {
        return Ok(Arc::new(if rules.tools_with_history {
            RenderedTools::of_history(messages, write)
        } else {
            RenderedTools::default()
        }));
    }
    let tool_rules = ToolRules {
        schema: rules.schema,
        strict: rules.strict,
    };
    cache.rendered(tools, tool_rules, write)
}

fn write(json: &mut String, tool: &WireTool<'_>) {
    json.push_str(r#"{"type":"function","function":{"name":"#);
    push_string(json, tool.name);
    if !tool.description.is_empty() {
        json.push_str(r#","description":"#);
        push_string(json, tool.description);
    }
    if let Some(parameters) = tool.parameters {
        json.push_str(r#","parameters":"#);
        json.push_str(parameters);
    }
    if let Some(strict) = tool.strict {
        json.push_str(if strict {
            r#","strict":true"#
        } else {
            r#","strict":false"#
        });
    }
    json.push_str("}}");
}
