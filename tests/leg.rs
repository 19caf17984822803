//! One leg that was played: what went in, what came out, what happened meanwhile, in words that a
//! test compares.

use raf_core::{
    AgentResponse, AgentResponseUpdate, ChatMessage, Error, ErrorKind, FinishReason, LegSnapshot,
    PendingCall, ResponseFold, Result, RoundUsage, ToolOutcome, ToolResult, Usage,
};
use raf_testing::{RecordedCall, outcome_word, transcript_lines};

use crate::watch::{Item, Seen, SeenRequest};

/// One leg that was played.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leg {
    /// The conversation that it was given.
    pub input: Vec<ChatMessage>,
    /// What was seen of it.
    pub seen: Seen,
    /// What it came to for the caller.
    pub response: Result<AgentResponse>,
    /// The entries of bodies during this leg.
    pub entries: Vec<RecordedCall>,
    /// What breaks the contract.
    pub faults: Vec<String>,
}

impl Leg {
    /// Why it ended.
    ///
    /// # Panics
    /// If it failed.
    #[track_caller]
    pub fn reason(&self) -> &FinishReason {
        match &self.response {
            Ok(response) => &response.finish_reason,
            Err(error) => panic!("the leg failed: {error:?}"),
        }
    }

    /// What it failed with.
    ///
    /// # Panics
    /// If it ended well.
    #[track_caller]
    pub fn error(&self) -> &Error {
        match &self.response {
            Ok(response) => panic!("the leg ended {:?}", response.finish_reason),
            Err(error) => error,
        }
    }

    /// The kind of the error that it failed with.
    ///
    /// # Panics
    /// If it ended well.
    #[track_caller]
    pub fn error_kind(&self) -> ErrorKind {
        self.error().kind()
    }

    /// What the leg had done when it failed; nothing if the loop had not begun.
    fn snapshot(&self) -> LegSnapshot {
        let error = self.response.as_ref().err();
        error.and_then(Error::leg).cloned().unwrap_or_default()
    }

    /// The messages that are new, as the caller gets them.
    pub fn messages(&self) -> Vec<ChatMessage> {
        match &self.response {
            Ok(response) => response.messages.clone(),
            Err(_) => self.snapshot().messages,
        }
    }

    /// Each new message in one line; see [`transcript_lines`].
    pub fn lines(&self) -> Vec<String> {
        transcript_lines(&self.messages())
    }

    /// The text of the last assistant message.
    pub fn text(&self) -> String {
        let mut last = self.messages().into_iter();
        last.rfind(|message| message.role() == raf_core::MessageRole::Assistant)
            .map(|message| message.text())
            .unwrap_or_default()
    }

    /// The tokens of the leg.
    pub fn usage(&self) -> Usage {
        match &self.response {
            Ok(response) => response.usage.clone(),
            Err(_) => self.snapshot().usage,
        }
    }

    /// The tokens of the run.
    pub fn run_usage(&self) -> Usage {
        match &self.response {
            Ok(response) => response.run_usage.clone(),
            Err(_) => self.snapshot().run_usage,
        }
    }

    /// The tokens of each request.
    pub fn rounds(&self) -> Vec<RoundUsage> {
        match &self.response {
            Ok(response) => response.rounds.clone(),
            Err(_) => self.snapshot().rounds,
        }
    }

    /// The calls that wait for the outside.
    pub fn pending(&self) -> Vec<PendingCall> {
        match &self.response {
            Ok(response) => response.pending.clone(),
            Err(_) => self.snapshot().pending,
        }
    }

    /// The ids of the calls whose bodies were given up.
    pub fn abandoned(&self) -> Vec<String> {
        let abandoned = match &self.response {
            Ok(response) => response.abandoned.clone(),
            Err(_) => self.snapshot().abandoned,
        };
        abandoned
            .iter()
            .map(|left| left.call.id().to_owned())
            .collect()
    }

    /// The model requests.
    pub fn requests(&self) -> &[SeenRequest] {
        &self.seen.requests
    }

    /// The items.
    pub fn items(&self) -> &[Item] {
        &self.seen.items
    }

    /// The first result of the call with this id.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn result(&self, id: &str) -> ToolResult {
        let messages = self.messages();
        let mut results = messages.iter().flat_map(ChatMessage::tool_results);
        let found = results.find(|result| result.call_id() == id).cloned();
        found.unwrap_or_else(|| panic!("no result of '{id}' in {:?}", self.lines()))
    }

    /// The outcome of the call with this id.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn outcome(&self, id: &str) -> ToolOutcome {
        self.result(id).outcome()
    }

    /// The messages that the items fold to.
    pub fn folded(&self) -> Vec<ChatMessage> {
        let mut fold = ResponseFold::new();
        for update in self.seen.items.iter().flatten() {
            fold.push(update);
        }
        fold.messages().to_vec()
    }

    /// Each item in the words of the cases: `text 'x'`, `call_ready c1`, `tool_start c1`,
    /// `tool_end c1 ok`, `run_end stop`, …
    pub fn events(&self) -> Vec<String> {
        self.seen.items.iter().map(event).collect()
    }

    /// How many events begin with this.
    pub fn count(&self, event: &str) -> usize {
        let events = self.events();
        events.iter().filter(|text| text.starts_with(event)).count()
    }

    /// Checks that exactly one event begins with each of these, in this order.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn assert_order(&self, expected: &[&str]) {
        let events = self.events();
        let mut last = None;
        for wanted in expected {
            let mut places = (0..events.len()).filter(|place| is_event(&events[*place], wanted));
            let place = places.next();
            assert!(
                place.is_some() && places.next().is_none(),
                "'{wanted}' is not there exactly once: {events:#?}"
            );
            assert!(place > last, "'{wanted}' comes too early: {events:#?}");
            last = place;
        }
    }
}

/// Whether an event is the one meant: the same, or with more said behind a space.
fn is_event(event: &str, wanted: &str) -> bool {
    event
        .strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// An item in the words of the cases.
fn event(item: &Item) -> String {
    use AgentResponseUpdate as Update;
    let update = match item {
        Ok(update) => update,
        Err(error) => return format!("run_end error {}", error.kind()),
    };
    match update {
        Update::MessageStart { .. } => "message_start".to_owned(),
        Update::TextDelta { text } => format!("text '{text}'"),
        Update::ReasoningDelta { text } => format!("reasoning '{text}'"),
        Update::ToolCallStart { call, .. } => format!("call_start {}", call.id),
        Update::ToolCallArgs { position, delta } => format!("call_args {position} '{delta}'"),
        Update::ToolCallEnd { call, .. } => format!("call_ready {}", call.id()),
        Update::MessageEnd { status } => format!("message_end {status:?}"),
        Update::Message { message } => format!("message {:?}", message.role()),
        Update::ToolStarted { call, .. } => format!("tool_start {}", call.id),
        Update::ToolProgress {
            occurrence,
            content,
        } => format!(
            "tool_progress {occurrence} '{}'",
            content.as_text().unwrap_or_default()
        ),
        Update::ToolCalled { result, .. } => format!(
            "tool_end {} {}",
            result.call_id(),
            outcome_word(result.outcome())
        ),
        Update::Usage { .. } => "usage".to_owned(),
        Update::ResponseMetadata { .. } => "metadata".to_owned(),
        Update::AttemptReset { .. } => "attempt_reset".to_owned(),
        Update::Finish { finish } => {
            let reason = serde_json::to_value(&finish.reason).unwrap_or_default();
            match reason.as_str() {
                Some(word) => format!("run_end {word}"),
                None => format!("run_end {reason}"),
            }
        }
        other => format!("{other:?}"),
    }
}

/// Checks lines one by one; an expected line that ends in `*` says how a line begins.
///
/// # Panics
/// If they differ.
#[track_caller]
pub fn assert_lines(lines: &[String], expected: &[&str]) {
    let fits = |(line, wanted): (&String, &&str)| match wanted.strip_suffix('*') {
        Some(beginning) => line.starts_with(beginning),
        None => line == wanted,
    };
    assert!(
        lines.len() == expected.len() && lines.iter().zip(expected).all(fits),
        "the lines are\n{lines:#?}\nbut were expected to be\n{expected:#?}"
    );
}
