//! The script that a fake follows: replies in order, what was asked, what went against it.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raf_core::{Error, Result};

use crate::reply::Reply;
use crate::request::ScriptedRequest;

/// A script that is shared between a fake and its test.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    fallback: Option<Reply>,
    requests: Vec<ScriptedRequest>,
    violations: Vec<String>,
}

impl Script {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Arc::new(Mutex::new(State {
            replies: replies.into_iter().collect(),
            ..State::default()
        })))
    }

    pub(crate) fn set_fallback(&self, reply: Reply) {
        self.lock().fallback = Some(reply);
    }

    pub(crate) fn push(&self, reply: Reply) {
        self.lock().replies.push_back(reply);
    }

    pub(crate) fn requests(&self) -> Vec<ScriptedRequest> {
        self.lock().requests.clone()
    }

    pub(crate) fn request_count(&self) -> usize {
        self.lock().requests.len()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.lock().replies.len()
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    #[track_caller]
    pub(crate) fn assert_done(&self) {
        let mut faults = self.violations();
        let left = self.remaining();
        if left > 0 {
            faults.push(format!(
                "{left} of the scripted replies were not asked for; {} requests came",
                self.request_count()
            ));
        }
        assert!(
            faults.is_empty(),
            "the script was not followed:\n- {}",
            faults.join("\n- ")
        );
    }

    /// Whether the next reply is refused before there is a stream.
    pub(crate) fn refuses_at_start(&self) -> bool {
        let state = self.lock();
        let next = state.replies.front().or(state.fallback.as_ref());
        next.is_some_and(|reply| reply.error_at_start.is_some())
    }

    /// Takes the next reply for a request that is sent now.
    pub(crate) fn answer(&self, mut request: ScriptedRequest) -> Result<Reply> {
        let reply = {
            let mut state = self.lock();
            request.index = state.requests.len();
            state.requests.push(request.clone());
            state.replies.pop_front().or_else(|| state.fallback.clone())
        };
        let Some(mut reply) = reply else {
            return Err(self.violation(format!(
                "request {} came, but the script has no reply left for it: {:?}",
                request.index,
                request.lines()
            )));
        };
        self.check(&reply, &request)?;
        while let Some(rule) = reply.rule.take() {
            reply = rule(&request);
            self.check(&reply, &request)?;
        }
        Ok(reply)
    }

    fn check(&self, reply: &Reply, request: &ScriptedRequest) -> Result<()> {
        let Some(check) = &reply.expectation else {
            return Ok(());
        };
        catch_unwind(AssertUnwindSafe(|| check(request))).map_err(|panic| {
            self.violation(format!(
                "request {} is not as expected: {}",
                request.index,
                panic_text(&*panic)
            ))
        })
    }

    /// Records what went against the script.
    pub(crate) fn violation(&self, text: String) -> Error {
        let error = Error::misuse(format!("the script was not followed: {text}"));
        self.lock().violations.push(text);
        error
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The words of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without words".to_owned())
}
