//! What the parts of a random case come to: a reply, a body, options.

use std::time::Duration;

use raf_core::{Content, Error, ErrorKind, FinishReason, Occurrence};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Behaviour, Reply};
use raf_tools::{ErrorPolicy, ExecutionMode, ExecutionOptions, ToolError, UnknownToolPolicy};

use super::{Act, End, Limits, Say};

impl Say {
    /// The reply.
    pub(super) fn reply(&self) -> Reply {
        if self.end == End::ErrorAtStart {
            return Reply::error_at_start(Error::new(ErrorKind::Overloaded, "busy"));
        }
        let mut reply = Reply::new();
        if self.reasoning {
            reply = reply.reasoning("hm");
        }
        for text in &self.text {
            reply = reply.then_text(*text);
        }
        if let (true, Some((input, output))) = (self.reset, self.usage) {
            reply = reply
                .call("c1", "plain", "{}")
                .usage(input, output)
                .attempt_reset("lost")
                .then_text("again ");
        }
        if self.interleaved {
            let halves = |text: &'static str| {
                let middle = text.floor_char_boundary(text.len() / 2);
                [&text[..middle], &text[middle..]]
            };
            let calls = self.calls.iter();
            reply = reply.interleaved_calls(
                calls.map(|(id, name, arguments, _)| (*id, *name, halves(arguments))),
            );
        } else {
            for (id, name, arguments, complete) in &self.calls {
                reply = if *complete {
                    reply.call(id, name, arguments)
                } else {
                    reply.incomplete_call(id, name, arguments)
                };
            }
        }
        if let Some((input, output)) = self.usage {
            reply = reply.usage(input / 2, output / 2).usage(input, output);
        }
        match self.end {
            End::Well | End::ErrorAtStart => reply,
            End::Length => reply.length(),
            End::Filter => reply.finish(FinishReason::ContentFilter),
            End::Cut => reply.cut(),
            End::OpenCallThenCut => reply.open_call("c9", "plain", "{\"id").cut(),
            End::Error => reply.error(Error::new(ErrorKind::Server, "the model failed")),
            End::Hang => reply.hang(),
        }
    }
}

impl Act {
    /// What the body of the call at this place does. What it says begins with the place.
    pub(super) fn behaviour(self, place: Occurrence) -> Behaviour {
        let milliseconds = Duration::from_millis;
        let own = |text: &str| format!("{place}: {text}");
        match self {
            Self::Empty => Behaviour::text(""),
            Self::Text(text) => Behaviour::text(own(text)),
            Self::Void => Behaviour::void(),
            Self::Json => Behaviour::json(own("json").into()),
            Self::Long => Behaviour::text(own(&"ä long résult ".repeat(20))),
            Self::Pieces => Behaviour::pieces([Content::text(own("a")), Content::text("b")]),
            Self::Progress => Behaviour::text(own("said"))
                .after_progress("half")
                .after_sleep(milliseconds(5))
                .after_progress("nearly"),
            Self::Invalid => Behaviour::invalid_parameters(own("no such id")),
            Self::Failed => Behaviour::execution_failed("secret"),
            Self::TellModel => Behaviour::tell_model(own("try later")),
            Self::Denied => Behaviour::permission_denied(own("not yours")),
            Self::Timeout => Behaviour::timeout("slow"),
            Self::Fatal => Behaviour::fatal("broken"),
            Self::GivesUp => Behaviour::fails(ToolError::cancelled),
            Self::Panics => Behaviour::panics(SCRIPTED_PANIC),
            Self::Slow(time) => Behaviour::text(own("slow")).after_sleep(milliseconds(time)),
            Self::SlowFailure(time) => {
                Behaviour::execution_failed("late").after_sleep(milliseconds(time))
            }
            Self::Hangs => Behaviour::hang().after_progress("waiting"),
            Self::UntilCancelled => Behaviour::until_cancelled(),
            Self::IgnoresCancel => Behaviour::hang().after_cancellation(),
            Self::SlowToStop(time) => Behaviour::text(own("stopped late"))
                .after_cancellation()
                .after_sleep(milliseconds(time)),
        }
    }
}

/// What scripted bodies panic with.
pub const SCRIPTED_PANIC: &str = "a scripted panic";

impl Limits {
    /// The options of the loop.
    pub(super) fn options(&self) -> FunctionInvokingOptions {
        let mut execution = ExecutionOptions::new()
            .with_max_concurrency(self.max_concurrency)
            .with_max_result_bytes(self.max_result_bytes)
            .with_detailed_errors(self.detailed_errors);
        if self.sequential {
            execution = execution.with_mode(ExecutionMode::Sequential);
        }
        if self.fail_fast {
            execution = execution.with_error_policy(ErrorPolicy::FailFast);
        }
        if self.stop_on_unknown {
            execution = execution.with_unknown_tools(UnknownToolPolicy::Stop);
        }
        FunctionInvokingOptions::new()
            .with_max_rounds(self.max_rounds)
            .with_wrap_up(self.wrap_up)
            .with_nudge_empty(self.nudge_empty)
            .with_keep_forcing(self.keep_forcing)
            .with_no_progress_rounds(self.no_progress_rounds)
            .with_max_failed_rounds(self.max_failed_rounds)
            .with_max_invalid_calls_per_tool(self.per_tool)
            .with_max_unknown_calls_per_tool(self.per_tool)
            .with_max_failed_calls_per_tool(self.per_tool)
            .with_max_calls(self.max_calls)
            .with_max_calls_per_tool(self.max_calls_per_tool)
            .with_max_wall_time(self.wall_time.map(Duration::from_millis))
            .with_execution(execution)
    }
}
