//! Tool declarations as JSON text, rendered once per set of tools.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use raf_core::{ChatMessage, Error, Result, ToolDeclaration};

use crate::dialect::{Rules, StrictForm};
use crate::request::labels::tool_name;
use crate::request::restore::{Changed, Restore};
use crate::request::schema;

/// The tools of a request.
#[derive(Debug, Default)]
pub(crate) struct RenderedTools {
    /// The array, or nothing.
    pub(crate) json: String,
    pub(crate) restore: Restore,
    /// The request offers no tools: these only explain the calls of the history.
    pub(crate) is_history_only: bool,
}

impl RenderedTools {
    pub(crate) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }
}

/// Keeps what was rendered last.
#[derive(Debug, Default)]
pub(crate) struct ToolsCache(Mutex<Option<Kept>>);

type Kept = (Vec<ToolDeclaration>, Arc<RenderedTools>);

impl ToolsCache {
    /// The tools as the dialect wants them.
    ///
    /// # Errors
    /// Two different tools of one name.
    pub(crate) fn rendered(
        &self,
        tools: &[ToolDeclaration],
        messages: &[ChatMessage],
        rules: &Rules,
    ) -> Result<Arc<RenderedTools>> {
        if tools.is_empty() {
            return Ok(Arc::new(if rules.tools_with_history {
                of_history(messages)
            } else {
                RenderedTools::default()
            }));
        }
        let is_same = |kept: &Kept| {
            kept.0.len() == tools.len()
                && kept
                    .0
                    .iter()
                    .zip(tools)
                    .all(|(kept, tool)| kept.is_same(tool))
        };
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = lock().as_ref().filter(|kept| is_same(kept)) {
            return Ok(Arc::clone(&kept.1));
        }
        let rendered = Arc::new(render(tools, rules)?);
        *lock() = Some((tools.to_vec(), Arc::clone(&rendered)));
        Ok(rendered)
    }
}

fn render(tools: &[ToolDeclaration], rules: &Rules) -> Result<RenderedTools> {
    let mut unique: Vec<(Cow<'_, str>, &ToolDeclaration)> = Vec::with_capacity(tools.len());
    for tool in tools {
        let name = tool_name(tool.name());
        match unique.iter().find(|(known, _)| *known == name) {
            Some((_, known)) if *known == tool => {}
            Some((_, known)) => {
                return Err(Error::configuration(format!(
                    "two different tools have the name '{name}' on the wire ('{}' and '{}'): rename \
                     one",
                    known.name(),
                    tool.name()
                )));
            }
            None => unique.push((name, tool)),
        }
    }
    let strict = |tool: &ToolDeclaration| match rules.strict {
        StrictForm::AsAsked => tool.strict(),
        StrictForm::Never => None,
        StrictForm::Uniform => {
            let asked = |strict| unique.iter().all(|(_, tool)| tool.strict() == strict);
            match tool.strict() {
                same if asked(same) => same,
                _ => Some(false),
            }
        }
    };
    let mut json = String::from("[");
    let mut changed = Vec::new();
    for (wire_name, tool) in &unique {
        if json.len() > 1 {
            json.push(',');
        }
        let asked = strict(tool);
        let parameters = schema::for_tool(tool.parameters_json().get(), asked == Some(true), rules);
        let strict = asked.map(|asked| asked && parameters.is_strict);
        write(
            &mut json,
            wire_name,
            tool.description(),
            parameters.text.as_deref(),
            strict,
        );
        if **wire_name != *tool.name() || parameters.before.is_some() {
            changed.push(Changed {
                wire_name: wire_name.clone().into_owned(),
                name: tool.name().to_owned(),
                schema: parameters.before,
            });
        }
    }
    json.push(']');
    Ok(RenderedTools {
        json,
        restore: Restore::new(changed),
        is_history_only: false,
    })
}

/// The tools that the history calls, for servers that want them declared.
fn of_history(messages: &[ChatMessage]) -> RenderedTools {
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    for call in messages.iter().flat_map(ChatMessage::tool_calls) {
        let name = tool_name(call.name());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return RenderedTools::default();
    }
    let mut json = String::from("[");
    for name in &names {
        if json.len() > 1 {
            json.push(',');
        }
        let nothing = r#"{"type":"object","properties":{}}"#;
        write(
            &mut json,
            name,
            "Not available any more.",
            Some(nothing),
            None,
        );
    }
    json.push(']');
    RenderedTools {
        json,
        is_history_only: true,
        ..RenderedTools::default()
    }
}

fn write(
    json: &mut String,
    name: &str,
    description: &str,
    parameters: Option<&str>,
    strict: Option<bool>,
) {
    let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
    json.push_str(r#"{"type":"function","function":{"name":"#);
    json.push_str(&text(name));
    if !description.is_empty() {
        json.push_str(r#","description":"#);
        json.push_str(&text(description));
    }
    if let Some(parameters) = parameters {
        json.push_str(r#","parameters":"#);
        json.push_str(parameters);
    }
    if let Some(strict) = strict {
        json.push_str(if strict {
            r#","strict":true"#
        } else {
            r#","strict":false"#
        });
    }
    json.push_str("}}");
}
