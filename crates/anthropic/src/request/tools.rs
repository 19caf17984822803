//! Tools and the choice among them, as the API has them.

use raf_core::{ChatMessage, Error, Result, ToolChoice};
use raf_wire::{
    BodyWriter, RenderedTools, Restore, SchemaForm, StrictForm, ToolRules, ToolsCache, WireTool,
    push_member, push_string, tool_name,
};

use super::Request;
use super::settings::conflict;

const RULES: ToolRules = ToolRules {
    schema: SchemaForm::Object,
    strict: StrictForm::Never,
};

/// The tools of a request.
#[derive(Debug)]
pub(super) struct Tools {
    /// The array, or nothing.
    pub(super) json: String,
    pub(super) restore: Restore,
    /// There are tools that the server runs.
    pub(super) may_pause: bool,
    is_history_only: bool,
}

/// The tools of the server and of the run. Tools stay declared while the history has calls.
///
/// # Errors
/// Two different tools of one name.
pub(super) fn write(
    request: &Request<'_>,
    messages: &[ChatMessage],
    cache: &ToolsCache,
) -> Result<Tools> {
    let options = request.options;
    let has_calls = || {
        messages
            .iter()
            .any(|message| message.tool_calls().next().is_some())
    };
    let server_tools = request.own.server_tools.as_deref().unwrap_or(&[]);
    let is_forbidden =
        options.tool_choice == Some(ToolChoice::None) && !request.dialect.rules.tool_choice_none;
    let mut tools = Tools {
        json: String::new(),
        restore: Restore::default(),
        may_pause: !server_tools.is_empty(),
        is_history_only: false,
    };
    if is_forbidden && !has_calls() {
        // The server knows no `none`: what is not declared is not called.
        tools.may_pause = false;
        return Ok(tools);
    }
    if is_forbidden {
        tracing::warn!(
            dialect = request.dialect.name(),
            "this server knows no tool choice 'none', and the history has calls: tools stay offered"
        );
    }
    if options.tools.is_empty() {
        if has_calls() {
            tools.json = RenderedTools::of_history(messages, tool).json;
            tools.is_history_only = server_tools.is_empty();
        }
    } else {
        let rendered = cache.rendered(&options.tools, RULES, tool)?;
        tools.json.clone_from(&rendered.json);
        tools.restore = rendered.restore.clone();
    }
    if !server_tools.is_empty() {
        let own = server_tools.iter().map(ToString::to_string);
        let own = own.collect::<Vec<_>>().join(",");
        tools.json = match tools.json.strip_prefix('[') {
            Some(rest) => format!("[{own},{rest}"),
            None => format!("[{own}]"),
        };
    }
    Ok(tools)
}

fn tool(json: &mut String, tool: &WireTool<'_>) {
    json.push_str(r#"{"name":"#);
    push_string(json, tool.name);
    if !tool.description.is_empty() {
        push_member(json, "description", tool.description);
    }
    json.push_str(r#","input_schema":"#);
    json.push_str(
        tool.parameters
            .unwrap_or(r#"{"type":"object","properties":{}}"#),
    );
    json.push('}');
}

impl Tools {
    /// Writes tools and choice.
    ///
    /// # Errors
    /// A call is forced that there is no tool for, or while the model thinks.
    pub(super) fn write_to(
        &self,
        body: &mut BodyWriter<'_>,
        request: &Request<'_>,
        thinks: bool,
    ) -> Result<()> {
        let options = request.options;
        let is_forced = options
            .tool_choice
            .as_ref()
            .is_some_and(ToolChoice::is_forced);
        if self.json.is_empty() {
            if is_forced && !options.extra_body.contains_key("tools") {
                return Err(Error::misuse(
                    "a tool call is forced by the tool choice, but the request has no tools",
                ));
            }
            return Ok(());
        }
        body.raw_field("tools", |text| text.extend_from_slice(self.json.as_bytes()));
        let mut choice = options.tool_choice.clone();
        if self.is_history_only {
            choice = Some(ToolChoice::None);
        } else if is_forced && thinks {
            conflict(
                request,
                "the API forces no tool call while the model thinks: use ToolChoice::Auto, or turn \
                 thinking off",
            )?;
            choice = Some(ToolChoice::Auto);
        }
        if choice == Some(ToolChoice::None) && !request.dialect.rules.tool_choice_none {
            choice = None;
        }
        let one_by_one =
            options.parallel_tool_calls == Some(false) && request.dialect.rules.parallel_switch;
        let mut text = match &choice {
            None if !one_by_one => return Ok(()),
            Some(ToolChoice::None) => r#"{"type":"none""#.to_owned(),
            Some(ToolChoice::Required) => r#"{"type":"any""#.to_owned(),
            Some(ToolChoice::Named(name)) => {
                let mut text = r#"{"type":"tool""#.to_owned();
                push_member(&mut text, "name", &tool_name(name));
                text
            }
            _ => r#"{"type":"auto""#.to_owned(),
        };
        if one_by_one && choice != Some(ToolChoice::None) {
            text.push_str(r#","disable_parallel_tool_use":true"#);
        }
        text.push('}');
        body.raw_field("tool_choice", |body| {
            body.extend_from_slice(text.as_bytes());
        });
        Ok(())
    }
}
