//! One leg that was played: what went in, what came out, and its events in words.

use std::collections::BTreeMap;

use raf_core::{
    AgentResponse, AgentResponseUpdate as Update, ChatMessage, Error, FinishReason, LegSnapshot,
    PendingCall, Result, RoundUsage, RunId, ToolResult, Usage, WaitsFor,
};
use raf_testing::{RecordedCall, outcome_word};
use serde_json::Value;

use super::watch::{Item, Seen};
use crate::notation::Event;

/// One leg that was played.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) line: u64,
    pub(crate) input: Vec<ChatMessage>,
    pub(crate) seen: Seen,
    /// What it came to for the caller; unset if it was dropped.
    pub(crate) response: Option<Result<AgentResponse>>,
    /// The entries of bodies during this leg: tool and entry.
    pub(crate) entries: Vec<(String, RecordedCall)>,
    /// Its items in words.
    pub(crate) events: Vec<Event>,
    /// The results, where the executor gave them alone.
    pub(crate) results: Option<Vec<ChatMessage>>,
}

impl Leg {
    pub(crate) fn error(&self) -> Option<&Error> {
        self.response.as_ref()?.as_ref().err()
    }

    pub(crate) fn ended(&self) -> Option<&AgentResponse> {
        self.response.as_ref()?.as_ref().ok()
    }

    fn of<T>(
        &self,
        ended: impl FnOnce(&AgentResponse) -> T,
        failed: impl FnOnce(&LegSnapshot) -> T,
    ) -> T {
        match (self.ended(), self.error().and_then(Error::leg)) {
            (Some(response), _) => ended(response),
            (None, Some(snapshot)) => failed(snapshot),
            (None, None) => failed(&LegSnapshot::default()),
        }
    }

    /// The messages that are new, as the caller gets them.
    pub(crate) fn messages(&self) -> Vec<ChatMessage> {
        if let Some(results) = &self.results {
            return results.clone();
        }
        self.of(|leg| leg.messages.clone(), |leg| leg.messages.clone())
    }

    pub(crate) fn usage(&self) -> Usage {
        self.of(|leg| leg.usage.clone(), |leg| leg.usage.clone())
    }

    pub(crate) fn run_usage(&self) -> Usage {
        self.of(|leg| leg.run_usage.clone(), |leg| leg.run_usage.clone())
    }

    pub(crate) fn rounds(&self) -> Vec<RoundUsage> {
        self.of(|leg| leg.rounds.clone(), |leg| leg.rounds.clone())
    }

    pub(crate) fn pending(&self) -> Vec<PendingCall> {
        self.of(|leg| leg.pending.clone(), |leg| leg.pending.clone())
    }

    pub(crate) fn run_id(&self) -> Option<RunId> {
        self.of(|leg| leg.run_id.clone(), |leg| leg.run_id.clone())
    }

    /// The ids of the calls whose bodies were given up.
    pub(crate) fn abandoned(&self) -> Vec<String> {
        let abandoned = self.of(|leg| leg.abandoned.clone(), |leg| leg.abandoned.clone());
        let ids = abandoned.iter().map(|left| left.call.id().to_owned());
        ids.collect()
    }

    /// How it ended in words; nothing if it was dropped.
    pub(crate) fn stop(&self) -> Option<Event> {
        match self.response.as_ref()? {
            Ok(response) => Some(reason_words(&response.finish_reason)),
            Err(error) => Some(error_words(error)),
        }
    }

    /// Whether all of its answers were refused.
    pub(crate) fn is_refusal(&self) -> bool {
        self.error()
            .is_some_and(|error| error.kind() == raf_core::ErrorKind::ApprovalRefused)
    }

    /// The first result of the call with this id.
    pub(crate) fn result(&self, id: &str) -> Option<ToolResult> {
        let messages = self.messages();
        let mut results = messages.iter().flat_map(ChatMessage::tool_results);
        results.find(|result| result.call_id() == id).cloned()
    }
}

/// The labels of the calls that wait, and for what: `c1 approval`.
pub(crate) fn waits(call: &PendingCall) -> String {
    let what = match &call.waits_for {
        WaitsFor::Approval(_) => "approval",
        WaitsFor::ToolResult => "result",
        WaitsFor::Data { .. } => "data",
        WaitsFor::EarlierCall => "earlier",
        _ => "something_else",
    };
    format!("{} {what}", call.call.id())
}

fn reason_words(reason: &FinishReason) -> Event {
    match serde_json::to_value(reason) {
        Ok(Value::String(word)) => vec![word],
        Ok(Value::Object(words)) => {
            let pair = words.into_iter().next();
            let (word, detail) = pair.unwrap_or_default();
            vec![word, detail.as_str().unwrap_or_default().to_owned()]
        }
        _ => Vec::new(),
    }
}

fn error_words(error: &Error) -> Event {
    let mut words = vec!["error".to_owned(), error.kind().as_str().to_owned()];
    words.extend(error.code().map(str::to_owned));
    words
}

/// The requests to the outside, by their random ids: what they are about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Names a request.
    pub(crate) fn name(&mut self, request_id: &str, label: &str) {
        self.0.insert(request_id.to_owned(), label.to_owned());
    }

    fn of<'a>(&'a self, request_id: &'a str) -> &'a str {
        self.0.get(request_id).map_or(request_id, String::as_str)
    }
}

fn event(words: &[&str]) -> Event {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn number(count: Option<u64>) -> String {
    count.map_or_else(|| "?".to_owned(), |count| count.to_string())
}

/// An item in words.
pub(crate) fn words(item: &Item, labels: &Labels) -> Event {
    let update = match item {
        Ok(update) => update,
        Err(error) => {
            let mut words = event(&["run_end"]);
            words.extend(error_words(error));
            return words;
        }
    };
    match update {
        Update::MessageStart { .. } => event(&["message_start"]),
        Update::TextDelta { text } => event(&["text", text]),
        Update::ReasoningDelta { text } => event(&["reasoning", text]),
        Update::ReasoningData { .. } => event(&["reasoning_data"]),
        Update::Content { .. } => event(&["content"]),
        Update::ToolCallStart { call, .. } => event(&["call_start", &call.id]),
        Update::ToolCallArgs { position, delta } => {
            event(&["call_args", &position.to_string(), delta])
        }
        Update::ToolCallEnd { call, .. } => event(&["call_ready", call.id()]),
        Update::MessageEnd { status } => {
            let status = format!("{status:?}").to_lowercase();
            event(&["message_end", &status])
        }
        Update::Message { message } => {
            let role = format!("{:?}", message.role()).to_lowercase();
            event(&["message", &role, &message.text()])
        }
        Update::ToolStarted { call, .. } => event(&["tool_start", &call.id]),
        Update::ToolProgress {
            occurrence,
            content,
        } => event(&[
            "progress",
            &occurrence.position.to_string(),
            content.as_text().unwrap_or_default(),
        ]),
        Update::ToolCalled { result, .. } => {
            let outcome = outcome_word(result.outcome());
            let mut words = event(&["tool_end", result.call_id()]);
            words.extend(outcome.split(' ').map(str::to_owned));
            words
        }
        Update::ToolApprovalRequest { request } => event(&["approval_requested", &request.call_id]),
        Update::ToolApprovalRefused { request_id, reason } => {
            event(&["approval_refused", labels.of(request_id), reason.as_str()])
        }
        Update::ToolApprovalClosed { request_id, reason } => {
            let reason = serde_json::to_value(reason).unwrap_or_default();
            let reason = reason.as_str().unwrap_or_default();
            event(&["approval_closed", labels.of(request_id), reason])
        }
        Update::ToolInterrupted { interrupt, .. } => {
            event(&["interrupted", labels.of(&interrupt.request_id)])
        }
        Update::Usage { usage } => event(&[
            "usage",
            &number(usage.input_tokens),
            &number(usage.output_tokens),
        ]),
        Update::ResponseMetadata { .. } => event(&["metadata"]),
        Update::AttemptReset { .. } => event(&["attempt_reset"]),
        Update::Nested { nested, .. } => {
            let mut said = event(&["nested"]);
            said.extend(words(&Ok(nested.update.clone()), labels));
            said
        }
        Update::Error { error } => event(&["error", &error.kind]),
        Update::Finish { finish } => {
            let mut words = event(&["run_end"]);
            words.extend(reason_words(&finish.reason));
            words
        }
        other => event(&[other.kind()]),
    }
}
