//! From a call to what is to be done with it: resolve, parse, validate, policy. Pure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    Extensions, Occurrence, RunId, SkipReason, ToolCall, ToolDeclaration, ToolErrorClass,
    ToolOutcome, ToolResult, TrustLabel,
};
use serde_json::Value;

use super::open_batch::CallState;
use super::options::{ExecutionOptions, UnknownToolPolicy};
use crate::arguments::{check_arguments, prepare_arguments};
use crate::context::{Resumption, ToolContext};
use crate::error::ToolError;
use crate::middleware::PreparingCall;
use crate::output::ToolOutput;
use crate::registered::RegisteredTool;
use crate::tool::{ITool, ToolArguments, ToolLimits};
use crate::toolset::{ToolEntryKind, ToolSet};

/// What is to be done with one call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PreparedCall {
    /// Its body may run.
    Run(Box<ReadyCall>),
    /// Its body may run once somebody says yes.
    Gated(Box<ReadyCall>),
    /// Its tool has no body here: the caller gives the result.
    DeclaredOnly,
    /// It is settled without a body.
    Settled(SettledCall),
}

impl PreparedCall {
    /// Where the call stands in its batch.
    pub fn into_state(self) -> CallState {
        match self {
            Self::Run(ready) => CallState::Ready(ready),
            Self::Gated(ready) => CallState::Gated {
                ready,
                request: None,
                reason: None,
            },
            Self::DeclaredOnly => CallState::DeclaredOnly,
            Self::Settled(settled) => CallState::Settled(settled),
        }
    }
}

/// A call whose tool is known and whose arguments have passed its schema.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadyCall {
    /// Its place in the run.
    pub occurrence: Occurrence,
    /// As the model made it.
    pub call: ToolCall,
    /// What runs.
    pub tool: RegisteredTool,
    /// What it runs with.
    pub arguments: ToolArguments,
    /// Which entry of the body this is, from 1.
    pub attempt: u32,
    /// Set if an earlier entry was interrupted.
    pub resumption: Option<Resumption>,
    /// Whether a person approved the arguments, so that they may not change any more.
    pub approved: bool,
    /// Whether a person changed the arguments.
    pub edited: bool,
    /// Whether aliases, a handler or a middleware changed the arguments.
    pub rewritten: bool,
    /// Set if no tool has this name: what the model is told unless a middleware answers.
    pub unknown: Option<String>,
}

/// A call that is settled without a body.
#[derive(Clone, Debug)]
pub struct SettledCall {
    /// Its place in the run.
    pub occurrence: Occurrence,
    /// As the model made it.
    pub call: ToolCall,
    /// What became of it.
    pub result: ToolResult,
}

impl SettledCall {
    /// A call with an outcome and, if given, a text of its own.
    pub fn new(
        occurrence: Occurrence,
        call: &ToolCall,
        outcome: ToolOutcome,
        text: Option<String>,
    ) -> Self {
        let text = text.unwrap_or_else(|| outcome.default_text().to_owned());
        let result = ToolResult::builder(call.id(), outcome)
            .name(call.name())
            .occurrence(occurrence)
            .trust(TrustLabel::Framework)
            .text(text)
            .build();
        Self {
            occurrence,
            call: call.clone(),
            result,
        }
    }

    /// A call that was not run.
    pub fn skipped(occurrence: Occurrence, call: &ToolCall, reason: SkipReason) -> Self {
        Self::new(occurrence, call, ToolOutcome::skipped(reason), None)
    }
}

/// What prepares calls: the visible tools, and what may rewrite a call before it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Preparation<'a> {
    /// The tools of the request.
    pub tools: &'a ToolSet,
    /// Aliases, handlers, middleware.
    pub options: &'a ExecutionOptions,
    /// The run.
    pub run_id: &'a RunId,
    /// Per-run things by type.
    pub extensions: &'a Extensions,
}

impl Preparation<'_> {
    /// What is to be done with a call: resolve, rewrite, parse, validate (contract D1).
    ///
    /// An unknown name is one error that lists the visible tools; arguments that are no JSON object
    /// or break the schema are one error that names each fault (contract D3, D4). Both are found
    /// before anybody is asked.
    pub fn prepare(&self, occurrence: Occurrence, call: &ToolCall) -> PreparedCall {
        let settle = |class, text| {
            let outcome = ToolOutcome::Error(class);
            PreparedCall::Settled(SettledCall::new(occurrence, call, outcome, text))
        };
        let name = self.canonical_name(call.name());
        let found = self.tools.get(name);
        let (tool, gated, unknown) = match found.map(|entry| (&entry.kind, entry.gated)) {
            Some((ToolEntryKind::DeclaredOnly(_), _)) => return PreparedCall::DeclaredOnly,
            Some((ToolEntryKind::Body(tool), gated)) => (tool.clone(), gated, None),
            None => match self.unknown(name) {
                Ok((tool, text)) => (tool, false, text),
                Err(text) => return settle(ToolErrorClass::UnknownTool, Some(text)),
            },
        };
        if !call.is_complete() {
            let reason = SkipReason::Truncated;
            return PreparedCall::Settled(SettledCall::skipped(occurrence, call, reason));
        }
        let (arguments, rewritten) = match self.rewrite(occurrence, call, tool.name()) {
            Ok(rewritten) => rewritten,
            Err(Rewrite::Failed(text)) => {
                return settle(ToolErrorClass::InvalidArguments, Some(text));
            }
            Err(Rewrite::Panicked) => return settle(ToolErrorClass::Panicked, None),
        };
        let checked = if rewritten {
            check_arguments(tool.name(), Value::Object(arguments), tool.schema())
        } else {
            prepare_arguments(call, tool.schema())
        };
        let arguments = match checked {
            Ok(arguments) => arguments,
            Err(fault) => {
                return settle(ToolErrorClass::InvalidArguments, Some(fault.to_string()));
            }
        };
        let ready = Box::new(ReadyCall {
            occurrence,
            call: call.clone(),
            tool,
            arguments,
            attempt: 1,
            resumption: None,
            approved: false,
            edited: false,
            rewritten,
            unknown,
        });
        if gated {
            PreparedCall::Gated(ready)
        } else {
            PreparedCall::Run(ready)
        }
    }

    /// The name itself if there is a tool of it, else the tool that it is an alias of.
    fn canonical_name<'n>(&'n self, name: &'n str) -> &'n str {
        if self.tools.get(name).is_some() {
            return name;
        }
        self.options.aliases.canonical_name(name).unwrap_or(name)
    }

    /// What an unknown name comes to: the caller's handler, or something that middleware is put
    /// around; else the text of the error.
    fn unknown(&self, name: &str) -> Result<(RegisteredTool, Option<String>), String> {
        if let UnknownToolPolicy::Handle(handler) = &self.options.unknown_tools {
            return Ok((UnknownTool::registered(name, Some(handler)), None));
        }
        let text = unknown_text(self.tools, name);
        let wrapped = self
            .options
            .middleware
            .iter()
            .any(|middleware| middleware.applies_to(name));
        if wrapped && !matches!(self.options.unknown_tools, UnknownToolPolicy::Stop) {
            return Ok((UnknownTool::registered(name, None), Some(text)));
        }
        Err(text)
    }

    /// The arguments after aliases, handler and prepare steps; those that are no JSON object pass
    /// unchanged.
    fn rewrite(
        &self,
        occurrence: Occurrence,
        call: &ToolCall,
        tool: &str,
    ) -> Result<(ToolArguments, bool), Rewrite> {
        let options = self.options;
        let idle = options.middleware.is_empty()
            && options.argument_handler.is_none()
            && options.aliases.is_empty();
        let Ok(parsed) = call.parsed_arguments() else {
            return Ok((ToolArguments::new(), false));
        };
        if idle {
            return Ok((ToolArguments::new(), false));
        }
        let mut preparing = PreparingCall {
            tool,
            call,
            run_id: self.run_id,
            occurrence,
            extensions: self.extensions,
            arguments: parsed.clone(),
        };
        options
            .aliases
            .canonical_keys(tool, &mut preparing.arguments);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if let Some(handler) = &options.argument_handler {
                handler.rewrite(&mut preparing)?;
            }
            for middleware in &options.middleware {
                if middleware.applies_to(tool) {
                    middleware.prepare(&mut preparing)?;
                }
            }
            Ok(())
        }));
        match outcome {
            Ok(Ok(())) => {
                let rewritten = preparing.arguments != *parsed;
                Ok((preparing.arguments, rewritten))
            }
            Ok(Err(error)) => Err(Rewrite::Failed(failed_text(&error))),
            Err(_) => {
                tracing::error!(tool, call_id = call.id(), "a prepare step panicked");
                Err(Rewrite::Panicked)
            }
        }
    }
}

enum Rewrite {
    Failed(String),
    Panicked,
}

fn failed_text(error: &ToolError) -> String {
    if error.is_model_visible() {
        return error.message().to_owned();
    }
    let id = raf_core::correlation_id();
    tracing::error!(correlation_id = %id, error = %error.detail(), "a prepare step failed");
    format!("The call could not be prepared (error id {id}).")
}

fn unknown_text(tools: &ToolSet, name: &str) -> String {
    let name: String = name.chars().take(100).collect();
    let mut names = String::new();
    for visible in tools.visible_names() {
        if names.len() + visible.len() > 1_500 {
            names.push_str(", …");
            break;
        }
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(visible);
    }
    match names.as_str() {
        "" => format!("Unknown tool '{name}'. No tools are available."),
        names => format!("Unknown tool '{name}'. Available tools: {names}."),
    }
}

/// What stands behind an unknown name: the caller's handler, or nothing.
#[derive(Debug)]
struct UnknownTool {
    declaration: ToolDeclaration,
    handler: Option<Arc<dyn ITool>>,
}

impl UnknownTool {
    fn registered(name: &str, handler: Option<&Arc<dyn ITool>>) -> RegisteredTool {
        RegisteredTool::unchecked(Arc::new(Self {
            declaration: ToolDeclaration::new(name, ""),
            handler: handler.cloned(),
        }))
    }
}

#[async_trait]
impl ITool for UnknownTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        match &self.handler {
            Some(handler) => handler.call(context, arguments).await,
            None => Err(ToolError::unknown_tool("Unknown tool.")),
        }
    }

    fn limits(&self) -> ToolLimits {
        match &self.handler {
            Some(handler) => handler.limits(),
            None => ToolLimits::default(),
        }
    }

    fn trust(&self) -> TrustLabel {
        match &self.handler {
            Some(handler) => handler.trust(),
            None => TrustLabel::Framework,
        }
    }
}
