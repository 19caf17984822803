//! What a leg comes to, folded.

use crate::approval::PendingCall;
use crate::content::{ToolCall, ToolOutcome, ToolResult};
use crate::finish::{AbandonedCall, Finish, FinishReason};
use crate::identity::RunId;
use crate::message::{ChatMessage, MessageRole};
use crate::record::PausedRun;
use crate::update::ResponseMetadata;
use crate::usage::{RoundUsage, Usage};

/// The fold of a leg that ended well: what is new, why it ended, what it cost, what waits.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentResponse {
    /// The messages that are new in this leg: append them to the conversation.
    pub messages: Vec<ChatMessage>,
    /// Why the leg ended.
    pub finish_reason: FinishReason,
    /// The run; unset where no function-invoking layer made one.
    pub run_id: Option<RunId>,
    /// Usage of this leg.
    pub usage: Usage,
    /// Usage of the run so far.
    pub run_usage: Usage,
    /// Usage of each model request of the run.
    pub rounds: Vec<RoundUsage>,
    /// The calls that wait for the outside.
    pub pending: Vec<PendingCall>,
    /// Bodies that were left to themselves.
    pub abandoned: Vec<AbandonedCall>,
    /// The run as a value, where it waits: give it back where no shared store holds its record.
    pub paused_run: Option<PausedRun>,
    /// What the provider says of its last reply.
    pub metadata: ResponseMetadata,
}

impl AgentResponse {
    /// The text of the last assistant message.
    pub fn text(&self) -> String {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role() == MessageRole::Assistant)
            .map(ChatMessage::text)
            .unwrap_or_default()
    }

    /// The calls of this leg that were not run, each with its result.
    pub fn calls_not_run(&self) -> Vec<(ToolCall, ToolResult)> {
        calls_not_run(&self.messages)
    }

    pub(crate) fn new(
        messages: Vec<ChatMessage>,
        finish: Finish,
        metadata: ResponseMetadata,
    ) -> Self {
        Self {
            messages,
            finish_reason: finish.reason,
            run_id: finish.run_id,
            usage: finish.usage,
            run_usage: finish.run_usage,
            rounds: finish.rounds,
            pending: finish.pending,
            abandoned: finish.abandoned,
            paused_run: finish.paused_run,
            metadata,
        }
    }
}

/// What a leg had done when it failed (contract C3): carried by the terminal error.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LegSnapshot {
    /// The messages that are new in this leg, valid to append to the conversation.
    pub messages: Vec<ChatMessage>,
    /// The run; unset where no function-invoking layer made one.
    pub run_id: Option<RunId>,
    /// Usage of this leg, as far as it was reported.
    pub usage: Usage,
    /// Usage of the run so far.
    pub run_usage: Usage,
    /// Usage of each model request of the run.
    pub rounds: Vec<RoundUsage>,
    /// The calls that wait for the outside.
    pub pending: Vec<PendingCall>,
    /// Bodies that were left to themselves.
    pub abandoned: Vec<AbandonedCall>,
}

impl LegSnapshot {
    /// The calls of this leg that were not run, each with its result.
    pub fn calls_not_run(&self) -> Vec<(ToolCall, ToolResult)> {
        calls_not_run(&self.messages)
    }
}

fn calls_not_run(messages: &[ChatMessage]) -> Vec<(ToolCall, ToolResult)> {
    let mut calls: Vec<&ToolCall> = Vec::new();
    let mut not_run = Vec::new();
    for message in messages {
        if message.role() == MessageRole::Assistant {
            calls = message.tool_calls().collect();
        }
        for result in message.tool_results() {
            let entered = !matches!(
                result.outcome(),
                ToolOutcome::Skipped { .. } | ToolOutcome::Cancelled { started: false }
            );
            let call = result
                .occurrence()
                .and_then(|occurrence| calls.get(occurrence.position as usize))
                .or_else(|| calls.iter().find(|call| call.id() == result.call_id()));
            if let (false, Some(call)) = (entered, call) {
                not_run.push(((*call).clone(), result.clone()));
            }
        }
    }
    not_run
}
