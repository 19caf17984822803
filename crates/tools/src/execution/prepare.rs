//! From a call to what is to be done with it: resolve, parse, validate, policy. Pure.

use raf_core::{
    Occurrence, SkipReason, ToolCall, ToolErrorClass, ToolOutcome, ToolResult, TrustLabel,
};

use super::open_batch::CallState;
use crate::arguments::prepare_arguments;
use crate::context::Resumption;
use crate::registered::RegisteredTool;
use crate::tool::ToolArguments;
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
    /// Whether a person changed the arguments.
    pub edited: bool,
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

impl ToolSet {
    /// What is to be done with a call, given what is visible in its request.
    ///
    /// An unknown name is one error that lists the visible tools; arguments that are no JSON object
    /// or break the schema are one error that names each fault (contract D3, D4). Both are found
    /// before anybody is asked.
    pub fn prepare(&self, occurrence: Occurrence, call: &ToolCall) -> PreparedCall {
        let Some(entry) = self.get(call.name()) else {
            return PreparedCall::Settled(self.unknown(occurrence, call));
        };
        let tool = match &entry.kind {
            ToolEntryKind::DeclaredOnly(_) => return PreparedCall::DeclaredOnly,
            ToolEntryKind::Body(tool) => tool,
        };
        if !call.is_complete() {
            return PreparedCall::Settled(SettledCall::skipped(
                occurrence,
                call,
                SkipReason::Truncated,
            ));
        }
        let arguments = match prepare_arguments(call, tool.schema()) {
            Ok(arguments) => arguments,
            Err(fault) => {
                return PreparedCall::Settled(SettledCall::new(
                    occurrence,
                    call,
                    ToolOutcome::Error(ToolErrorClass::InvalidArguments),
                    Some(fault.to_string()),
                ));
            }
        };
        let ready = Box::new(ReadyCall {
            occurrence,
            call: call.clone(),
            tool: tool.clone(),
            arguments,
            attempt: 1,
            resumption: None,
            edited: false,
        });
        if entry.gated {
            PreparedCall::Gated(ready)
        } else {
            PreparedCall::Run(ready)
        }
    }

    fn unknown(&self, occurrence: Occurrence, call: &ToolCall) -> SettledCall {
        let name: String = call.name().chars().take(100).collect();
        let mut names = String::new();
        for visible in self.visible_names() {
            if names.len() + visible.len() > 1_500 {
                names.push_str(", …");
                break;
            }
            if !names.is_empty() {
                names.push_str(", ");
            }
            names.push_str(visible);
        }
        let available = match names.as_str() {
            "" => "No tools are available.".to_owned(),
            names => format!("Available tools: {names}."),
        };
        SettledCall::new(
            occurrence,
            call,
            ToolOutcome::Error(ToolErrorClass::UnknownTool),
            Some(format!("Unknown tool '{name}'. {available}")),
        )
    }
}
