//! From a call to what is to be done with it: resolve, parse, validate, policy. Pure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use raf_core::{
    CallRecord, Error, Extensions, Occurrence, PendingCall, Result, RunId, SkipReason, ToolCall,
    ToolErrorClass, ToolOutcome, ToolResult, TrustLabel,
};
use serde_json::Value;

use super::body::panic_message;
use super::open_batch::{BatchCall, CallState};
use super::options::ExecutionOptions;
use super::render::error_class;
use super::unknown::{Unknown, unknown};
use crate::arguments::{check_arguments, prepare_arguments};
use crate::context::Resumption;
use crate::error::ToolError;
use crate::middleware::PreparingCall;
use crate::registered::RegisteredTool;
use crate::tool::ToolArguments;
use crate::toolset::{ToolEntry, ToolEntryKind, ToolSet};

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
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts; they are recorded as such"
)]
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
    /// Whether these very arguments were decided on, by a person, a rule or a policy, so that they may
    /// not change any more.
    pub decided: bool,
    /// Whether a person changed the arguments.
    pub edited: bool,
    /// Whether aliases, a handler or a middleware changed the arguments.
    pub rewritten: bool,
    /// Whether no tool has this name, so that a handler or only middleware runs.
    pub unknown: bool,
    /// What the model is told of an unknown tool unless a middleware answers.
    pub refusal: Option<String>,
    /// Whether what asked the outside last was a middleware around the body, and not the body.
    pub asked_around: bool,
    /// Whether the body has ended in an earlier leg: only what is around it is entered again.
    pub body_ended: bool,
    /// What a run nested in the call waits for beside what is answered now.
    pub nested: Vec<PendingCall>,
}

impl ReadyCall {
    /// A call that nothing has happened to.
    fn new(
        occurrence: Occurrence,
        call: &ToolCall,
        tool: RegisteredTool,
        arguments: ToolArguments,
    ) -> Self {
        Self {
            occurrence,
            call: call.clone(),
            tool,
            arguments,
            attempt: 1,
            resumption: None,
            approved: false,
            decided: false,
            edited: false,
            rewritten: false,
            unknown: false,
            refusal: None,
            asked_around: false,
            body_ended: false,
            nested: Vec::new(),
        }
    }
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
        let (tool, gated, refusal) = match found.map(|entry| (&entry.kind, entry.gated)) {
            Some((ToolEntryKind::DeclaredOnly(_), _)) => return PreparedCall::DeclaredOnly,
            Some((ToolEntryKind::Body(tool), gated)) => (tool.clone(), gated, None),
            None => match unknown(self.options, self.tools, name) {
                Ok(Unknown { tool, refusal }) => {
                    let gated = tool.tool().requires_approval();
                    (tool, gated, refusal)
                }
                Err(text) => return settle(ToolErrorClass::UnknownTool, Some(text)),
            },
        };
        if !call.is_complete() {
            let reason = SkipReason::Truncated;
            return PreparedCall::Settled(SettledCall::skipped(occurrence, call, reason));
        }
        let (arguments, rewritten) = match self.rewrite(occurrence, call, tool.name()) {
            Ok(rewritten) => rewritten,
            Err((class, text)) => return settle(class, text),
        };
        let checked = if rewritten {
            check_arguments(tool.name(), Value::Object(arguments), tool.schema())
        } else {
            prepare_arguments(call, tool.schema())
        };
        let arguments = match (checked, refusal.is_some()) {
            (Ok(arguments), _) => arguments,
            (Err(_), true) => return settle(ToolErrorClass::UnknownTool, refusal),
            (Err(fault), false) => {
                return settle(ToolErrorClass::InvalidArguments, Some(fault.to_string()));
            }
        };
        let ready = Box::new(ReadyCall {
            rewritten,
            unknown: found.is_none(),
            refusal,
            ..ReadyCall::new(occurrence, call, tool, arguments)
        });
        if gated {
            PreparedCall::Gated(ready)
        } else {
            PreparedCall::Run(ready)
        }
    }

    /// A call of a batch, prepared, under its tool's canonical name.
    pub fn batch_call(&self, occurrence: Occurrence, call: &ToolCall) -> BatchCall {
        let state = self.prepare(occurrence, call).into_state();
        BatchCall::new(occurrence, call.clone(), state)
            .with_tool(Some(self.canonical_name(call.name())))
    }

    /// A recorded call as it was when it was prepared, its tool resolved afresh (contract E8): a
    /// handler of unknown tools for one that was unknown, never for one whose tool is gone.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if it cannot be resolved.
    pub(super) fn recorded(
        &self,
        record: &CallRecord,
        occurrence: Occurrence,
    ) -> Result<ReadyCall> {
        let name = record.tool_name();
        let resolved = if record.facts.unknown {
            let unknown = unknown(self.options, self.tools, name).ok();
            unknown.map(|unknown| (unknown.tool, unknown.refusal))
        } else {
            let tool = self.tools.get(name).and_then(ToolEntry::body);
            tool.map(|tool| (tool.clone(), None))
        };
        let Some((tool, refusal)) = resolved else {
            return Err(Error::configuration(format!(
                "the tool '{name}' of a pending call cannot be found: give the tools of the paused \
                 run again when it is resumed. The call stays pending"
            ))
            .with_context("call", occurrence.to_string()));
        };
        let arguments = record.arguments.as_object().cloned().unwrap_or_default();
        let facts = &record.facts;
        let rewritten = record
            .call
            .parse_arguments()
            .is_ok_and(|written| written != arguments);
        Ok(ReadyCall {
            attempt: record.attempts + 1,
            resumption: facts.answer.as_ref().map(|answer| {
                Resumption::new(answer.state.clone(), answer.data.clone())
                    .with_middleware(facts.asked_around)
            }),
            approved: facts.approved,
            decided: facts.approved || facts.decided,
            edited: facts.edited,
            rewritten,
            unknown: facts.unknown,
            refusal,
            asked_around: facts.asked_around,
            body_ended: facts.body_ended,
            ..ReadyCall::new(occurrence, &record.call, tool, arguments)
        })
    }

    /// The name itself if there is a tool of it or none at all, else the tool that it is an alias of.
    fn canonical_name<'n>(&'n self, name: &'n str) -> &'n str {
        if self.tools.get(name).is_some() {
            return name;
        }
        let canonical = self.options.aliases.canonical_name(name);
        canonical
            .filter(|canonical| self.tools.get(canonical).is_some())
            .unwrap_or(name)
    }

    /// The arguments after aliases, handler and prepare steps; those that are no JSON object pass
    /// unchanged.
    fn rewrite(
        &self,
        occurrence: Occurrence,
        call: &ToolCall,
        tool: &str,
    ) -> std::result::Result<(ToolArguments, bool), (ToolErrorClass, Option<String>)> {
        let options = self.options;
        let idle = options.middleware.is_empty()
            && options.argument_handler.is_none()
            && options.aliases.is_empty();
        if idle {
            return Ok((ToolArguments::new(), false));
        }
        let Ok(parsed) = call.parse_arguments() else {
            return Ok((ToolArguments::new(), false));
        };
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
            Ok::<_, ToolError>(())
        }));
        match outcome {
            Ok(Ok(())) => {
                let rewritten = preparing.arguments != parsed;
                Ok((preparing.arguments, rewritten))
            }
            Ok(Err(error)) => Err((error_class(error.kind(), false), Some(failed_text(&error)))),
            Err(payload) => {
                let panic = panic_message(&*payload);
                tracing::error!(tool, call_id = call.id(), %panic, "a prepare step panicked");
                Err((ToolErrorClass::Panicked, None))
            }
        }
    }
}

fn failed_text(error: &ToolError) -> String {
    if error.is_model_visible() {
        return error.message().to_owned();
    }
    let id = raf_core::correlation_id();
    tracing::error!(correlation_id = %id, error = %error.detail(), "a prepare step failed");
    format!("The call could not be prepared (error id {id}).")
}
