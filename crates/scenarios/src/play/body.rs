//! Tools as scripted: what a file says of a body as what a body does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raf_core::{Content, MediaContent, ToolDeclaration};
use raf_testing::{Behaviour, Latch, ScriptedTool};
use raf_tools::{ToolArguments, ToolError, ToolLimits, ToolOutput};
use serde_json::{Map, Value, json};
use tokio::sync::Barrier;

use crate::format::{Amount, Does, Failure, Gate, Ordered, Param, Part, Shorthand, Tool};

/// What lies outside the bodies: latches, meeting points, counters, the trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside(Arc<Mutex<Things>>);

#[derive(Debug, Default)]
struct Things {
    latches: BTreeMap<String, Latch>,
    barriers: BTreeMap<String, Arc<Barrier>>,
    counters: BTreeMap<String, u64>,
    trace: Vec<String>,
}

impl Outside {
    /// The latch of this name.
    pub(crate) fn latch(&self, name: &str) -> Latch {
        self.with(|things| things.latches.entry(name.to_owned()).or_default().clone())
    }

    /// What a counter says.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.with(|things| things.counters.get(name).copied().unwrap_or_default())
    }

    /// Writes into the trace.
    pub(crate) fn trace(&self, line: String) {
        self.with(|things| things.trace.push(line));
    }

    /// What was written.
    pub(crate) fn traced(&self) -> Vec<String> {
        self.with(|things| things.trace.clone())
    }

    fn count(&self, name: &str) {
        self.with(|things| *things.counters.entry(name.to_owned()).or_default() += 1);
    }

    fn barrier(&self, tool: &str, bodies: usize) -> Arc<Barrier> {
        self.with(|things| {
            let barrier = things.barriers.entry(tool.to_owned());
            Arc::clone(barrier.or_insert_with(|| Arc::new(Barrier::new(bodies))))
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Things) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the model reads of a tool.
pub(crate) fn declaration(name: &str, tool: &Tool) -> ToolDeclaration {
    let description = tool.description.as_deref().unwrap_or("A scripted tool.");
    let declaration = ToolDeclaration::new(name, description);
    match (&tool.schema, &tool.params) {
        (Some(schema), _) => declaration.with_parameters(schema),
        (None, Some(params)) => declaration.with_parameters(&schema(params)),
        (None, None) => declaration,
    }
}

fn schema(params: &Ordered<Param>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, Param(value)) in params.iter() {
        let (schema, may_be_left_out) = match value {
            Value::String(word) => {
                let word = word.split(',').next().unwrap_or_default().trim();
                let optional = word.strip_suffix('?');
                let schema = json!({"type": optional.unwrap_or(word)});
                (schema, optional.is_some())
            }
            schema => (schema.clone(), false),
        };
        properties.insert(name.to_owned(), schema);
        if !may_be_left_out {
            required.push(name);
        }
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// The tool itself.
pub(crate) fn scripted(name: &str, tool: &Tool, outside: &Outside) -> ScriptedTool {
    let mut limits = ToolLimits::new()
        .with_exclusive(tool.exclusive)
        .with_idempotent(tool.idempotent)
        .with_polling(tool.polling);
    limits.concurrency = tool.concurrency;
    limits.max_result_bytes = tool.max_result_bytes;
    if let Some(deadline) = tool.deadline_ms {
        limits = limits.with_deadline(Duration::from_millis(deadline));
    }
    let mut scripted = ScriptedTool::new(name)
        .with_declaration(declaration(name, tool))
        .with_limits(limits);
    if tool.gate == Gate::Always {
        scripted = scripted.gated();
    }
    for does in &tool.first {
        scripted = scripted.then(behaviour(name, &does.value, outside));
    }
    let always = match &tool.does {
        Some(does) => behaviour(name, &does.value, outside),
        None => Behaviour::void(),
    };
    scripted.always(always)
}

fn behaviour(tool: &str, does: &Does, outside: &Outside) -> Behaviour {
    let (tool, does, outside) = (tool.to_owned(), does.clone(), outside.clone());
    Behaviour::from_fn(move |_, arguments| {
        if let Some(counter) = &does.counts {
            outside.count(counter);
        }
        let mut behaviour = end(&does, arguments);
        for text in &does.progress {
            behaviour = behaviour.after_progress(Content::text(filled(text, arguments)));
        }
        if let Some(latch) = &does.opens {
            behaviour = behaviour.after_opening(&outside.latch(latch));
        }
        if let Some(latch) = &does.waits_for {
            behaviour = behaviour.after_latch(&outside.latch(latch));
        }
        if let Some(bodies) = does.meets {
            behaviour = behaviour.after_barrier(&outside.barrier(&tool, bodies));
        }
        if let Some(time) = &does.sleeps_ms {
            let time = match time {
                Amount::Fixed(time) => *time,
                Amount::Argument(name) => arguments[name].as_u64().unwrap_or_default(),
            };
            behaviour = behaviour.after_sleep(Duration::from_millis(time));
        }
        if does.until_cancelled {
            behaviour = behaviour.after_cancellation();
        }
        behaviour
    })
}

/// How a body ends.
fn end(does: &Does, arguments: &ToolArguments) -> Behaviour {
    if let Some(text) = &does.returns {
        return Behaviour::text(filled(text, arguments));
    }
    if let Some(value) = &does.json {
        return Behaviour::json(value.clone());
    }
    if let Some(name) = &does.argument {
        return Behaviour::json(arguments.get(name).cloned().unwrap_or_default());
    }
    if let Some(parts) = &does.parts {
        return Behaviour::parts(parts.iter().map(|part| content(part)));
    }
    if let Some(pieces) = &does.pieces {
        return streaming(pieces, does);
    }
    if let Some(failure) = &does.fails {
        let failure = failure.clone();
        return Behaviour::fails(move || tool_error(&failure));
    }
    if let Some(text) = &does.panics {
        return Behaviour::panics(text);
    }
    if let Some(asks) = &does.asks {
        return asking(asks.information.clone(), asks.state.clone());
    }
    match does {
        Does { hangs: true, .. } => Behaviour::hang(),
        Does { echoes: true, .. } => Behaviour::echo(),
        Does {
            until_cancelled: true,
            ..
        } => Behaviour::fails(ToolError::cancelled),
        _ => Behaviour::void(),
    }
}

/// Streams its pieces, and then ends well or as is said; when it is entered again with data, the
/// stream ends well behind the data.
fn streaming(pieces: &[Shorthand<Part>], does: &Does) -> Behaviour {
    let pieces: Vec<Content> = pieces.iter().map(|part| content(part)).collect();
    let (fails, asks) = (does.fails.clone(), does.asks.clone());
    Behaviour::custom(move |context, _| {
        let mut stream: Vec<Result<Content, ToolError>> = pieces.iter().cloned().map(Ok).collect();
        let end = match (&fails, &asks, context.resumption()) {
            (Some(failure), ..) => Some(Err(tool_error(failure))),
            (None, Some(_), Some(resumed)) => {
                let said = resumed.data.as_str().map(str::to_owned);
                let said = said.unwrap_or_else(|| resumed.data.to_string());
                Some(Ok(Content::text(said)))
            }
            (None, Some(asks), None) => {
                let (information, state) = (asks.information.clone(), asks.state.clone());
                Some(Err(ToolError::interrupt(information, state)))
            }
            (None, None, _) => None,
        };
        stream.extend(end);
        let output = ToolOutput::stream(futures::stream::iter(stream));
        std::future::ready(Ok(output))
    })
}

/// Asks, and when it is entered again returns the data; without data it asks once more.
fn asking(information: Value, state: Value) -> Behaviour {
    Behaviour::custom(move |context, _| {
        let result = match context.resumption() {
            Some(resumed) if resumed.state != state => {
                let text = format!("the state is {}, not {state}", resumed.state);
                Err(ToolError::fatal(text))
            }
            Some(resumed) => Ok(match &resumed.data {
                Value::String(text) => ToolOutput::Text(text.clone()),
                data => ToolOutput::Json(data.clone()),
            }),
            None => Err(ToolError::interrupt(information.clone(), state.clone())),
        };
        std::future::ready(result)
    })
}

/// The error of a failure.
pub(crate) fn tool_error(failure: &Failure) -> ToolError {
    match failure.clone() {
        Failure::Hidden(text) => ToolError::execution_failed(text),
        Failure::TellModel(text) => ToolError::tell_model(text),
        Failure::InvalidParameters(text) => ToolError::invalid_parameters(text),
        Failure::PermissionDenied(text) => ToolError::permission_denied(text),
        Failure::Timeout(text) => ToolError::timeout(text),
        Failure::Fatal(text) => ToolError::fatal(text),
        Failure::Terminate(text) => ToolError::terminate(text),
    }
}

fn content(part: &Part) -> Content {
    match part {
        Part::Text(text) => Content::text(text),
        Part::Image(url) => Content::Image(MediaContent::url(url)),
        Part::Audio(url) => Content::Audio(MediaContent::url(url)),
        Part::File(url) => Content::File(MediaContent::url(url)),
    }
}

/// A text with the arguments that it names in braces.
pub(crate) fn filled(text: &str, arguments: &ToolArguments) -> String {
    let mut filled = text.to_owned();
    for (name, value) in arguments {
        let said = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        filled = filled.replace(&format!("{{{name}}}"), &said);
    }
    filled
}
