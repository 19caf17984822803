//! The order of a stream's items, and its one end (V4, contract B3).

use raf_core::{AgentResponseUpdate, Finish, FinishReason, PendingCall, Result};

use super::calls::Calls;

/// A whole leg of the loop: messages and calls in order, exactly one outcome per call that does not
/// wait for the outside, one terminal item, last, and never the inner `Finish(ToolCalls)`.
pub fn check_updates(items: &[Result<AgentResponseUpdate>]) -> Vec<String> {
    let mut check = Check::default();
    check.read(items);
    check.must_have_ended(items);
    let pending = match items.last() {
        Some(Ok(AgentResponseUpdate::Finish { finish })) => {
            check.must_be_of_the_loop(finish);
            finish.pending.clone()
        }
        Some(Err(error)) => pending_of(error),
        _ => Vec::new(),
    };
    check.calls.must_be_settled(&pending, &mut check.faults);
    check.faults
}

/// A whole reply of a provider, or of a layer below the loop: messages and calls in order, one
/// terminal item, last.
pub fn check_reply_updates(items: &[Result<AgentResponseUpdate>]) -> Vec<String> {
    let mut check = Check::default();
    check.read(items);
    check.must_have_ended(items);
    check.faults
}

/// A leg that was dropped: what was read until then is in order.
pub fn check_partial_updates(items: &[Result<AgentResponseUpdate>]) -> Vec<String> {
    let mut check = Check::default();
    check.read(items);
    check.faults
}

fn pending_of(error: &raf_core::Error) -> Vec<PendingCall> {
    let leg = error.leg();
    leg.map(|leg| leg.pending.clone()).unwrap_or_default()
}

#[derive(Default)]
struct Check {
    faults: Vec<String>,
    is_message_open: bool,
    ended_at: Option<usize>,
    calls: Calls,
}

impl Check {
    fn read(&mut self, items: &[Result<AgentResponseUpdate>]) {
        for (index, item) in items.iter().enumerate() {
            if let Some(end) = self.ended_at {
                self.faults
                    .push(format!("item {index} comes after the terminal item {end}"));
            }
            match item {
                Ok(update) => self.read_update(index, update),
                Err(_) => self.ended_at = Some(index),
            }
        }
    }

    fn read_update(&mut self, index: usize, update: &AgentResponseUpdate) {
        use AgentResponseUpdate as Update;
        match update {
            Update::MessageStart { .. } => {
                if self.is_message_open {
                    self.fault(index, "a message starts within another");
                }
                self.is_message_open = true;
                self.calls.message_starts();
            }
            Update::TextDelta { .. }
            | Update::ReasoningDelta { .. }
            | Update::ReasoningData { .. }
            | Update::Content { .. } => self.must_be_in_message(index, "a delta"),
            Update::ToolCallStart { position, .. } => {
                self.must_be_in_message(index, "a call");
                self.calls.call_starts(index, *position, &mut self.faults);
            }
            Update::ToolCallArgs { position, .. } => {
                self.must_be_in_message(index, "an argument piece");
                self.calls.call_goes_on(index, *position, &mut self.faults);
            }
            Update::ToolCallEnd { position, call } => {
                self.must_be_in_message(index, "a call's end");
                self.calls
                    .call_ends(index, *position, call, &mut self.faults);
            }
            Update::MessageEnd { status } => {
                if !self.is_message_open {
                    self.fault(index, "a message ends that had not started");
                }
                self.is_message_open = false;
                self.calls.message_ends(index, *status, &mut self.faults);
            }
            Update::AttemptReset { .. } => {
                self.is_message_open = false;
                self.calls.reset();
            }
            Update::Message { .. } => self.must_be_between(index, "a whole message"),
            Update::ToolStarted { occurrence, call } => {
                self.must_be_between(index, "a start");
                self.calls
                    .body_starts(index, *occurrence, &call.id, &mut self.faults);
            }
            Update::ToolProgress { occurrence, .. } | Update::Nested { occurrence, .. } => {
                self.calls
                    .body_goes_on(index, *occurrence, &mut self.faults);
            }
            Update::ToolCalled { occurrence, result } => {
                self.must_be_between(index, "a result");
                self.calls
                    .call_is_settled(index, *occurrence, result, &mut self.faults);
            }
            Update::ToolApprovalRequest { request } => {
                self.calls
                    .is_asked(index, &request.request_id, &mut self.faults);
            }
            Update::ToolInterrupted {
                occurrence,
                interrupt,
            } => {
                self.calls
                    .body_is_interrupted(index, *occurrence, &mut self.faults);
                self.calls
                    .is_asked(index, &interrupt.request_id, &mut self.faults);
            }
            Update::Finish { .. } => {
                if self.is_message_open {
                    self.fault(index, "the finish comes within a message");
                }
                self.ended_at = Some(index);
            }
            _ => {}
        }
    }

    fn must_be_in_message(&mut self, index: usize, what: &str) {
        if !self.is_message_open {
            self.fault(index, &format!("{what} stands outside a message"));
        }
    }

    fn must_be_between(&mut self, index: usize, what: &str) {
        if self.is_message_open {
            self.fault(index, &format!("{what} stands within a message"));
        }
    }

    fn must_have_ended(&mut self, items: &[Result<AgentResponseUpdate>]) {
        if self.ended_at.is_none() {
            self.faults.push(format!(
                "the stream ended after {} items without a terminal item",
                items.len()
            ));
        }
    }

    fn must_be_of_the_loop(&mut self, finish: &Finish) {
        if finish.reason == FinishReason::ToolCalls {
            self.faults
                .push("the leg ended with the inner finish reason tool_calls".to_owned());
        }
        if finish.reason.is_pause() && finish.pending.is_empty() {
            let reason = &finish.reason;
            self.faults
                .push(format!("the leg ended {reason:?}, and nothing is pending"));
        }
    }

    fn fault(&mut self, index: usize, what: &str) {
        self.faults.push(format!("item {index}: {what}"));
    }
}
