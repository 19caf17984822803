//! One request, and what its reply comes to.

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{
    Error, ErrorKind, FinishReason, Result, RetryStatus, SkipReason, ToolCall, ToolOutcome,
};
use serde::{Deserialize, Serialize};

use super::LegStep;
use crate::function_invoking::FunctionInvokingChatClient;
use crate::function_invoking::drive::LegEnd;
use crate::function_invoking::hooks::{self, HooksEnd};
use crate::function_invoking::leg::Leg;
use crate::function_invoking::options::FunctionInvokingOptions;
use crate::function_invoking::plan::{self, ReplyKind};
use crate::function_invoking::round::{self, Reply, ReplyEnd, Request};
use crate::function_invoking::run::Stop;
use crate::function_invoking::steer::{fill, hook_end, nudge};
use crate::function_invoking::tools::known_tools;

/// A request to the model.
pub(in crate::function_invoking) struct Ask<'a> {
    pub(in crate::function_invoking) client: &'a FunctionInvokingChatClient,
    pub(in crate::function_invoking) options: &'a FunctionInvokingOptions,
    /// Whether it is the last one: it has no tools.
    pub(in crate::function_invoking) wrap_up: bool,
    /// The end of the run behind its reply, if no other request may follow.
    pub(in crate::function_invoking) limit: Option<&'a FinishReason>,
}

/// What a reply comes to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::function_invoking) enum Asked {
    /// It ends the leg.
    End(LegEnd),
    /// The request failed, and so does the leg.
    Failed(ReplyError),
    /// The model is asked again.
    Again,
    /// It asks for calls.
    Calls {
        /// Its request said that nothing may be called.
        forbidden: bool,
    },
}

#[async_trait]
impl LegStep for Ask<'_> {
    type Value = Asked;

    const MAY_WAIT: bool = true;

    fn name(&self, leg: &Leg) -> String {
        format!("round/{}/model", leg.run.counters.rounds)
    }

    async fn enter(self, leg: &mut Leg) -> Result<Asked> {
        let tools = known_tools(self.client, leg).await?;
        let options = self.options;
        let round = leg.run.counters.rounds;
        let choice = round::tool_choice(
            leg.options.tool_choice.as_ref(),
            self.wrap_up,
            leg.first_request,
            options.keep_forcing,
        );
        let mut request = Box::new(Request {
            messages: leg.request_messages(),
            options: round::request_options(&leg.options, &tools, choice.clone()),
        });
        leg.tools = Some(tools);
        match hooks::before_request(&options.hooks, leg, &mut request).await {
            HooksEnd::GoOn => {}
            end => return Ok(Asked::End(hook_end(leg, &[], round, end).await)),
        }
        let forbidden = round::forbids_calls(&request.options, choice.as_ref());
        let reply = round::exchange(self.client.inner(), leg, request).await;
        let calls = reply.calls();
        if let ReplyEnd::Whole { usage, .. } = &reply.end {
            let contents = &reply.contents;
            match hooks::after_reply(&options.hooks, leg, round, contents, usage.as_ref()).await {
                HooksEnd::GoOn => {}
                end => return Ok(Asked::End(hook_end(leg, &calls, round, end).await)),
            }
        }
        let end_of = |end| Asked::End(LegEnd::Finish(self.limit.cloned().unwrap_or(end)));
        Ok(match reply_kind(leg, reply, &calls, round).await {
            Replied::Kind(ReplyKind::Calls) => Asked::Calls { forbidden },
            Replied::Kind(ReplyKind::Truncated(end)) => Asked::End(LegEnd::Finish(end)),
            // A message came meanwhile: it is answered too, if a request is left.
            Replied::Kind(ReplyKind::Answer(_))
                if leg.has_mail()
                    && self.limit.is_none()
                    && leg.run.counters.round_end(options).is_none() =>
            {
                Asked::Again
            }
            Replied::Kind(ReplyKind::Answer(end)) => end_of(end),
            Replied::Kind(ReplyKind::Empty) if options.nudge_empty && !leg.nudged => {
                leg.nudged = true;
                nudge(leg).await;
                Asked::Again
            }
            Replied::Kind(ReplyKind::Empty) => end_of(FinishReason::EmptyResponse),
            Replied::Failed(error) => {
                let kept = ReplyError::from(&error);
                leg.error = Some(error);
                Asked::Failed(kept)
            }
            Replied::Stopped(stop) => Asked::End(LegEnd::Stopped(stop)),
        })
    }
}

enum Replied {
    Kind(ReplyKind),
    Failed(Error),
    Stopped(Stop),
}

/// What a reply comes to; the calls of one that did not end well get their outcome here (A2, G1).
async fn reply_kind(leg: &mut Leg, reply: Reply, calls: &[ToolCall], round: u32) -> Replied {
    let truncated = ToolOutcome::skipped(SkipReason::Truncated);
    match reply.end {
        ReplyEnd::Whole { reason, usage } => {
            let limit = leg.options.max_output_tokens;
            let kind = plan::classify(&reply.contents, &reason, usage.as_ref(), limit);
            if matches!(kind, ReplyKind::Truncated(_)) {
                fill(leg, calls, round, truncated).await;
            }
            Replied::Kind(kind)
        }
        ReplyEnd::Failed(error) => {
            fill(leg, calls, round, truncated).await;
            Replied::Failed(error)
        }
        ReplyEnd::Stopped(stop) => {
            fill(leg, calls, round, stop.not_started()).await;
            Replied::Stopped(stop)
        }
    }
}

/// A failed request, as plain data: without its source.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::function_invoking) struct ReplyError {
    kind: ErrorKind,
    retry: RetryStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    context: Vec<(Cow<'static, str>, String)>,
}

impl From<&Error> for ReplyError {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind(),
            retry: error.retry_status(),
            retry_after_ms: error
                .retry_after()
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            message: error.message().to_owned(),
            status: error.status(),
            code: error.code().map(str::to_owned),
            request_id: error.request_id().map(str::to_owned),
            context: error.context().to_vec(),
        }
    }
}

impl From<ReplyError> for Error {
    fn from(kept: ReplyError) -> Self {
        let mut error = Self::new(kept.kind, kept.message)
            .with_retry(kept.retry)
            .with_retry_after(kept.retry_after_ms.map(Duration::from_millis));
        for (key, value) in kept.context {
            error = error.with_context(key, value);
        }
        if let Some(status) = kept.status {
            error = error.with_status(status);
        }
        if let Some(code) = kept.code {
            error = error.with_code(code);
        }
        match kept.request_id {
            Some(id) => error.with_request_id(id),
            None => error,
        }
    }
}
