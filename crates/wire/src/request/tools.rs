//! Tool declarations as JSON text, rendered once per set of tools.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use raf_core::{ChatMessage, Error, Result, ToolDeclaration};

use crate::request::restore::{Changed, Restore};
use crate::request::schema::{SchemaForm, schema_for_tool};
use crate::request::tool_name;

/// What becomes of a tool's `strict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StrictForm {
    /// Sent where it was asked for (`mpfaffenberger/code_puppy#368`), with the schema in its strict
    /// form.
    AsAsked,
    /// Sent for all tools or for none: Cerebras refuses a mixture.
    Uniform,
    /// Always sent, also `false`: where it is left out, OpenAI's Responses API takes it for `true`.
    Always,
    /// Never sent.
    Never,
}

/// By what rules tools are written.
#[derive(Clone, Copy, Debug)]
pub struct ToolRules {
    /// What schemas may look like.
    pub schema: SchemaForm,
    /// What becomes of `strict`.
    pub strict: StrictForm,
}

/// A tool as it goes over the wire; its writer gives it the provider's form.
#[derive(Debug)]
pub struct WireTool<'a> {
    /// Its name, as every provider takes it.
    pub name: &'a str,
    /// What it is for; perhaps empty.
    pub description: &'a str,
    /// Its schema as JSON text; none where the member is left out.
    pub parameters: Option<&'a str>,
    /// Whether the model is held to the schema, where that is said.
    pub strict: Option<bool>,
}

/// The tools of a request.
#[derive(Debug, Default)]
pub struct RenderedTools {
    /// The array, or nothing.
    pub json: String,
    /// The way back of names and arguments.
    pub restore: Restore,
    /// The request offers no tools: these only explain the calls of the history.
    pub is_history_only: bool,
}

/// Keeps what was rendered last.
#[derive(Debug, Default)]
pub struct ToolsCache(Mutex<Option<Kept>>);

type Kept = (Vec<ToolDeclaration>, Arc<RenderedTools>);

impl ToolsCache {
    /// The tools as the rules and the writer want them, which are the same for each use of one cache.
    ///
    /// # Errors
    /// Two different tools of one name.
    pub fn rendered(
        &self,
        tools: &[ToolDeclaration],
        rules: ToolRules,
        write: fn(&mut String, &WireTool<'_>),
    ) -> Result<Arc<RenderedTools>> {
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
        let rendered = Arc::new(RenderedTools::of(tools, rules, write)?);
        *lock() = Some((tools.to_vec(), Arc::clone(&rendered)));
        Ok(rendered)
    }
}

impl RenderedTools {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// Renders declarations.
    ///
    /// # Errors
    /// Two different tools of one name.
    pub fn of(
        tools: &[ToolDeclaration],
        rules: ToolRules,
        write: fn(&mut String, &WireTool<'_>),
    ) -> Result<Self> {
        if tools.is_empty() {
            return Ok(Self::default());
        }
        render(tools, rules, write)
    }

    /// The tools that the history calls, for servers that want them declared, though they are not
    /// offered any more.
    pub fn of_history(messages: &[ChatMessage], write: fn(&mut String, &WireTool<'_>)) -> Self {
        of_history(messages, write)
    }
}

fn render(
    tools: &[ToolDeclaration],
    rules: ToolRules,
    write: fn(&mut String, &WireTool<'_>),
) -> Result<RenderedTools> {
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
        StrictForm::Always => Some(tool.strict().unwrap_or(false)),
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
        let parameters = schema_for_tool(
            tool.parameters_json().get(),
            asked == Some(true),
            rules.schema,
        );
        let strict = asked.map(|asked| asked && parameters.is_strict);
        let wire = WireTool {
            name: wire_name,
            description: tool.description(),
            parameters: parameters.text.as_deref(),
            strict,
        };
        write(&mut json, &wire);
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

fn of_history(messages: &[ChatMessage], write: fn(&mut String, &WireTool<'_>)) -> RenderedTools {
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
        let wire = WireTool {
            name,
            description: "Not available any more.",
            parameters: Some(r#"{"type":"object","properties":{}}"#),
            strict: None,
        };
        write(&mut json, &wire);
    }
    json.push(']');
    RenderedTools {
        json,
        is_history_only: true,
        ..RenderedTools::default()
    }
}
