//! One reply, from what its frames say to the updates of the stream.

use raf_core::{
    AgentResponseUpdate, Content, Error, Finish, MessageRole, ProviderData, RefusalContent,
    ResponseMetadata, Result, UnknownContent, Usage,
};
use serde_json::{Map, Value};

use raf_wire::{
    CallAssembler, CallPiece, Head, Json, Limits, Reporter, ThinkPart, ThinkTags, WireError,
    WireReply, in_band,
};

use crate::wire::chunk::{Chunk, FrameHead};
use crate::wire::finish::{Ending, ending, reason};
use crate::wire::loose;

/// The reply as far as it has come. Updates gather in `updates` until they are taken out.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says what has come so far"
)]
pub(crate) struct Reply {
    pub(crate) updates: Vec<AgentResponseUpdate>,
    provider: String,
    reporter: Reporter,
    request_id: Option<String>,
    frame_head: FrameHead,
    identity: Option<ResponseMetadata>,
    is_identified: bool,
    is_started: bool,
    has_delta: bool,
    has_reasoning: bool,
    says_something: bool,
    think: Option<ThinkTags>,
    refusal: String,
    details: Vec<Json>,
    calls: CallAssembler,
    ending: Option<Ending>,
    finish_word: String,
    usage: Option<Usage>,
    is_done: bool,
    is_whole_body: bool,
}

impl Reply {
    /// A reply that has not begun. `provider` names whose opaque data it holds.
    pub(crate) fn new(
        provider: &str,
        reporter: Reporter,
        limits: &Limits,
        think_tags: bool,
    ) -> Self {
        Self {
            updates: Vec::new(),
            provider: provider.to_owned(),
            reporter,
            request_id: None,
            frame_head: FrameHead::default(),
            identity: None,
            is_identified: false,
            is_started: false,
            has_delta: false,
            has_reasoning: false,
            says_something: false,
            think: think_tags.then(ThinkTags::new),
            refusal: String::new(),
            details: Vec::new(),
            calls: CallAssembler::new(limits),
            ending: None,
            finish_word: String::new(),
            usage: None,
            is_done: false,
            is_whole_body: false,
        }
    }

    /// Ids of the reply; the first that says something counts.
    pub(crate) fn identify(&mut self, id: &str, model: &str) {
        if self.is_identified || (id.is_empty() && model.is_empty()) {
            return;
        }
        self.is_identified = true;
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut metadata = ResponseMetadata::default();
        metadata.response_id = text(id);
        metadata.model = text(model);
        self.identity = Some(metadata);
    }

    /// A delta came: from now on whole messages repeat what was streamed.
    pub(crate) fn delta_begins(&mut self) {
        self.has_delta = true;
    }

    /// Whether a whole message in a frame is news.
    pub(crate) fn message_counts(&self) -> bool {
        !self.has_delta
    }

    pub(crate) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let Some(mut think) = self.think.take() else {
            return self.push_text(text);
        };
        think.push(text, |part, text| self.push_part(part, text));
        self.think = Some(think);
    }

    fn push_part(&mut self, part: ThinkPart, text: &str) {
        match part {
            ThinkPart::Text => self.push_text(text),
            // The server sends the same thoughts in a field of their own.
            ThinkPart::Thought if self.has_reasoning => {}
            ThinkPart::Thought => self.push_reasoning(text),
        }
    }

    fn push_text(&mut self, text: &str) {
        self.begin_part();
        self.updates.push(AgentResponseUpdate::TextDelta {
            text: text.to_owned(),
        });
    }

    pub(crate) fn reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.has_reasoning = true;
            self.push_reasoning(text);
        }
    }

    fn push_reasoning(&mut self, text: &str) {
        self.begin();
        self.updates.push(AgentResponseUpdate::ReasoningDelta {
            text: text.to_owned(),
        });
    }

    /// Opaque reasoning that goes back to its provider (OpenRouter). Pieces of one text are joined.
    pub(crate) fn reasoning_details(&mut self, details: &[Json]) {
        for detail in details {
            let same = |name: &str, other: &Json| other.get(name) == detail.get(name);
            let joined = self.details.last_mut().filter(|last| {
                same("type", last) && same("index", last) && detail.get("data").is_none()
            });
            match (joined, detail) {
                (Some(last), Json::Object(members)) => join_detail(last, members),
                _ => self.details.push(detail.clone()),
            }
        }
    }

    pub(crate) fn refusal(&mut self, text: &str) {
        self.refusal.push_str(text);
    }

    /// A part of a kind that is not known: passed on as it came.
    pub(crate) fn unknown_part(&mut self, part: &Json) {
        self.begin_part();
        self.updates.push(AgentResponseUpdate::Content {
            content: Box::new(Content::Unknown(UnknownContent::new(part.to_value()))),
        });
    }

    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(crate) fn calls_begin(&mut self) {
        self.calls.begin_array();
    }

    pub(crate) fn call(&mut self, piece: CallPiece<'_>) -> Result<()> {
        if !(piece.id.is_empty() && piece.name.is_empty() && piece.arguments.is_empty()) {
            self.begin_part();
        }
        self.calls.push(piece, &mut self.updates)
    }

    /// A finish reason; empty says nothing. A cut stays a cut, whatever comes after it.
    pub(crate) fn finish_reason(&mut self, word: &str) {
        if word.trim().is_empty() {
            return;
        }
        if !matches!(self.ending, Some(Ending::Length | Ending::ContentFilter)) {
            self.ending = Some(ending(word));
            word.clone_into(&mut self.finish_word);
        }
    }

    /// The error of a finish reason that says that the reply failed.
    pub(crate) fn failed_ending(&self, word: &str) -> Error {
        let found = WireError {
            message: format!("the reply ended with finish reason '{}'", word.trim()),
            ..WireError::default()
        };
        self.in_band_error(&found)
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    fn report_usage(&mut self) -> Option<Usage> {
        let usage = self.usage.take()?;
        self.updates.push(AgentResponseUpdate::usage(usage.clone()));
        Some(usage)
    }

    fn flush(&mut self) {
        if let Some(mut think) = self.think.take() {
            think.finish(|part, text| self.push_part(part, text));
        }
        self.flush_details();
    }

    fn flush_details(&mut self) {
        if self.details.is_empty() {
            return;
        }
        let details = std::mem::take(&mut self.details);
        let mut members = Map::new();
        let details = details.iter().map(Json::to_value).collect();
        members.insert("reasoning_details".to_owned(), Value::Array(details));
        let data = ProviderData::new(&self.provider, Value::Object(members));
        self.begin();
        self.updates.push(AgentResponseUpdate::ReasoningData {
            data: Box::new(data),
        });
    }

    /// A part other than reasoning follows.
    fn begin_part(&mut self) {
        self.begin();
        if !self.details.is_empty() {
            self.flush_details();
        }
    }

    fn begin(&mut self) {
        self.says_something = true;
        if self.is_started {
            return;
        }
        self.is_started = true;
        let mut message_id = None;
        if let Some(metadata) = self.identity.take() {
            message_id = metadata.response_id.as_deref().map(Box::from);
            self.updates.push(AgentResponseUpdate::ResponseMetadata {
                metadata: Box::new(metadata),
            });
        }
        self.updates.push(AgentResponseUpdate::MessageStart {
            role: MessageRole::Assistant,
            message_id,
        });
    }
}

impl WireReply for Reply {
    fn head(&mut self, head: &Head) {
        self.request_id = head.request_id().map(str::to_owned);
    }

    #[inline]
    fn line(&mut self, _: &[u8], line: &str) -> Result<bool> {
        match Chunk::parse(line, &mut self.frame_head) {
            Some(chunk) => chunk.apply(self).map(|()| true),
            None => Ok(false),
        }
    }

    fn frame(&mut self, _: &str, frame: &Json) -> Result<()> {
        loose::apply(frame, self)
    }

    fn document_ends(&mut self, document: &Json) {
        // A whole answer needs no end mark.
        self.is_whole_body |= loose::is_whole_answer(document);
    }

    fn is_frame(&self, line: &Json) -> bool {
        line.present("choices").is_some() || in_band(line).is_some()
    }

    fn begins_stream(line: &Json) -> bool {
        let choices = line.get("choices").and_then(Json::as_array);
        choices.is_some_and(|choices| choices.iter().any(|of| of.present("delta").is_some()))
    }

    fn body_ends(&mut self, documents: &[Json]) -> Result<()> {
        if self.has_ended() {
            return Ok(());
        }
        if documents
            .iter()
            .all(|document| document.get("choices").is_none())
        {
            return Err(self
                .reporter
                .protocol("answered with JSON that is no chat completion"));
        }
        if documents.len() == 1 {
            // Choices that are empty, or null.
            return Err(self.reporter.empty());
        }
        Ok(())
    }

    fn end_mark(&mut self) {
        self.is_done = true;
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn has_ended(&self) -> bool {
        self.is_done || self.ending.is_some() || self.is_whole_body
    }

    fn conclude(&mut self) -> Result<Finish> {
        if !self.has_ended() {
            return Err(self.reporter.truncated());
        }
        if self.ending == Some(Ending::Failed) {
            return Err(self.failed_ending(&self.finish_word));
        }
        self.flush();
        if self.ending.is_none() && !self.says_something && self.refusal.is_empty() {
            return Err(self.reporter.empty());
        }
        self.begin();
        let refusal = std::mem::take(&mut self.refusal);
        if !refusal.is_empty() {
            let mut content = RefusalContent::default();
            content.text = refusal;
            self.updates.push(AgentResponseUpdate::Content {
                content: Box::new(Content::Refusal(content)),
            });
        }
        let ending = self.ending.clone().unwrap_or(Ending::Stop);
        let was_cut = matches!(ending, Ending::Length | Ending::ContentFilter);
        let has_calls = self
            .calls
            .finish(was_cut, &self.provider, &mut self.updates);
        self.updates.push(AgentResponseUpdate::message_end());
        if !self.finish_word.is_empty() {
            let mut metadata = ResponseMetadata::default();
            metadata.raw_finish_reason = Some(self.finish_word.clone());
            self.updates.push(AgentResponseUpdate::ResponseMetadata {
                metadata: Box::new(metadata),
            });
        }
        let mut finish = Finish::new(reason(&ending, &self.finish_word, has_calls));
        if let Some(usage) = self.report_usage() {
            finish = finish.with_usage(usage);
        }
        Ok(finish)
    }

    fn abandon(&mut self) {
        self.flush();
        self.report_usage();
    }

    fn updates(&mut self) -> &mut Vec<AgentResponseUpdate> {
        &mut self.updates
    }

    fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }
}

/// Goes on with a piece of opaque reasoning: texts are joined, other members laid over.
fn join_detail(last: &mut Json, members: &[(String, Json)]) {
    for (name, value) in members {
        match (name.as_str(), last.get_mut(name), value) {
            ("text" | "summary", Some(Json::String(begun)), Json::String(piece)) => {
                begun.push_str(piece);
            }
            (_, _, Json::Null) => {}
            _ => last.set(name, value.clone()),
        }
    }
}
