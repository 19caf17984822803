//! One reply, from what its events say to the updates of the stream. A turn that the server paused goes
//! on in the same reply.

use std::borrow::Cow;

use raf_core::{
    AgentResponseUpdate, ChatMessage, Error, Finish, ResponseMetadata, Result, RetryStatus, Usage,
};
use raf_wire::{Head, Json, Limits, RateLimitHeaders, Reporter, WireError, WireReply};
use serde_json::{Map, Value};

use crate::blocks::Blocks;
use crate::blocks::kind::{self, Kind};
use crate::endpoint::RATE_LIMITS;
use crate::said::Said;
use crate::wire::delta::{DeltaEvent, Surroundings};
use crate::wire::plain::PlainEvent;
use crate::wire::usage::{Counts, Report};
use crate::wire::{loose, stop};

/// What the end of a message says beside its reason.
pub(crate) const END_MEMBERS: &[&str] = &["stop_sequence", "stop_details", "container"];

/// The reply as far as it has come. Updates gather until they are taken out.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says what has come so far"
)]
pub(crate) struct Reply {
    said: Said,
    blocks: Blocks,
    surroundings: Surroundings,
    reporter: Reporter,
    request_id: Option<String>,
    /// How often a paused turn may yet be gone on with.
    continuations: u32,
    message_id: String,
    stop_reason: String,
    extra: Map<String, Value>,
    counts: Counts,
    /// Of the messages before, where a turn was gone on with.
    earlier: Option<Usage>,
    saw_frames: bool,
    saw_mark: bool,
    saw_message: bool,
    is_whole: bool,
    is_done: bool,
    is_paused: bool,
}

impl Reply {
    /// A reply that has not begun. `provider` (the dialect's name) and `model` say whose opaque data it
    /// holds; `continuations` how often a paused turn is gone on with.
    pub(crate) fn new(
        provider: &str,
        model: &str,
        reporter: Reporter,
        limits: &Limits,
        continuations: u32,
    ) -> Self {
        Self {
            said: Said::new(continuations > 0),
            blocks: Blocks::new(provider, model, limits),
            surroundings: Surroundings::default(),
            reporter,
            request_id: None,
            continuations,
            message_id: String::new(),
            stop_reason: String::new(),
            extra: Map::new(),
            counts: Counts::default(),
            earlier: None,
            saw_frames: false,
            saw_mark: false,
            saw_message: false,
            is_whole: false,
            is_done: false,
            is_paused: false,
        }
    }

    /// The message of a turn that the server paused, to be sent back; the reply is ready for what
    /// follows. Nothing if the turn has ended.
    pub(crate) fn resume(&mut self) -> Option<ChatMessage> {
        if !std::mem::take(&mut self.is_paused) {
            return None;
        }
        let paused = self.said.recorded()?;
        self.continuations -= 1;
        self.blocks.next_message();
        self.earlier = self.total();
        self.counts = Counts::default();
        self.message_id.clear();
        self.stop_reason.clear();
        (self.saw_frames, self.saw_mark, self.saw_message) = (false, false, false);
        (self.is_whole, self.is_done) = (false, false);
        Some(paused)
    }

    pub(crate) fn error_of(&self, found: &WireError) -> Error {
        self.in_band_error(found)
    }

    /// A message begins; returns whether it is news. The same once more is nothing; another within it
    /// means that two replies are mixed up.
    pub(crate) fn message_begins(
        &mut self,
        id: &str,
        model: &str,
        usage: Option<&Report<'_>>,
    ) -> Result<bool> {
        if self.saw_message {
            if id.is_empty() || self.message_id.is_empty() || id == self.message_id {
                return Ok(false);
            }
            return Err(self
                .reporter
                .protocol("began another message within one: two replies are mixed up")
                .with_retry(RetryStatus::Temporary));
        }
        self.saw_message = true;
        id.clone_into(&mut self.message_id);
        let mut metadata = ResponseMetadata::default();
        metadata.response_id = Some(id).filter(|id| !id.is_empty()).map(str::to_owned);
        metadata.model = Some(model)
            .filter(|model| !model.is_empty())
            .map(str::to_owned);
        self.said.identify(metadata);
        self.counts(usage);
        Ok(true)
    }

    /// A message that may hold all it will ever hold.
    pub(crate) fn message_start(&mut self, message: &Json) -> Result<()> {
        let text = |name: &str| message.get(name).and_then(Json::as_str).unwrap_or("");
        let usage = message.get("usage").map(Report::of);
        if !self.message_begins(text("id"), text("model"), usage.as_ref())? {
            return Ok(());
        }
        match message.present("content") {
            Some(Json::String(content)) => self.text(None, content)?,
            Some(Json::Array(blocks)) => {
                for block in blocks {
                    self.block_start(None, kind::of(block))?;
                    self.blocks.stop(None, &mut self.said)?;
                }
            }
            _ => {}
        }
        self.end_with(message);
        Ok(())
    }

    /// A whole message, as a body by itself: it needs no end mark.
    pub(crate) fn whole_message(&mut self, message: &Json) -> Result<()> {
        self.is_whole = true;
        self.message_start(message)
    }

    pub(crate) fn block_start(&mut self, index: Option<u64>, block: Kind) -> Result<()> {
        self.blocks.start(index, block, &mut self.said)
    }

    pub(crate) fn block_stop(&mut self, index: Option<u64>) -> Result<()> {
        self.blocks.stop(index, &mut self.said)
    }

    #[inline]
    pub(crate) fn text(&mut self, index: Option<u64>, piece: &str) -> Result<()> {
        self.blocks.text(index, piece, &mut self.said)
    }

    #[inline]
    pub(crate) fn thinking(&mut self, index: Option<u64>, piece: &str) -> Result<()> {
        self.blocks.thinking(index, piece, &mut self.said)
    }

    pub(crate) fn signature(&mut self, index: Option<u64>, piece: &str) {
        self.blocks.signature(index, piece);
    }

    pub(crate) fn citation(&mut self, index: Option<u64>, citation: &Json) {
        self.blocks.citation(index, citation);
    }

    pub(crate) fn summary(&mut self, index: Option<u64>, piece: &str) {
        self.blocks.summary(index, piece);
    }

    #[inline]
    pub(crate) fn arguments(&mut self, index: Option<u64>, piece: Cow<'_, str>) -> Result<()> {
        self.blocks.arguments(index, piece, &mut self.said)
    }

    /// The end of a message: reason, counts, and what else it says.
    pub(crate) fn message_delta(&mut self, event: &Json) {
        if let Some(delta) = event.get("delta") {
            self.end_with(delta);
        }
        self.counts(event.get("usage").map(Report::of).as_ref());
        if let Some(edits) = event.filled("context_management") {
            let edits = edits.to_value();
            self.extra.insert("context_management".to_owned(), edits);
        }
    }

    /// A stop reason; one that says nothing erases none.
    pub(crate) fn stop_reason(&mut self, word: &str) {
        if !word.trim().is_empty() {
            word.trim().clone_into(&mut self.stop_reason);
        }
    }

    fn end_with(&mut self, end: &Json) {
        self.stop_reason(end.get("stop_reason").and_then(Json::as_str).unwrap_or(""));
        for name in END_MEMBERS {
            if let Some(value) = end.filled(name) {
                self.extra.insert((*name).to_owned(), value.to_value());
            }
        }
    }

    pub(crate) fn counts(&mut self, usage: Option<&Report<'_>>) {
        if let Some(usage) = usage {
            self.counts.report(usage);
        }
    }

    pub(crate) fn message_stop(&mut self) {
        self.is_done = true;
    }

    fn total(&self) -> Option<Usage> {
        match (self.earlier.clone(), self.counts.usage()) {
            (Some(mut earlier), Some(usage)) => {
                earlier += &usage;
                Some(earlier)
            }
            (earlier, usage) => earlier.or(usage),
        }
    }

    fn report_usage(&mut self) -> Option<Usage> {
        let usage = self.total()?;
        self.said
            .updates
            .push(AgentResponseUpdate::usage(usage.clone()));
        Some(usage)
    }

    fn report_end(&mut self) {
        let mut metadata = ResponseMetadata::default();
        metadata.raw_finish_reason = Some(self.stop_reason.clone()).filter(|word| !word.is_empty());
        metadata.extra = std::mem::take(&mut self.extra);
        if metadata != ResponseMetadata::default() {
            self.said
                .updates
                .push(AgentResponseUpdate::ResponseMetadata {
                    metadata: Box::new(metadata),
                });
        }
    }
}

impl WireReply for Reply {
    fn head(&mut self, head: &Head) {
        self.request_id = head.request_id().map(str::to_owned);
        let mut limits = Map::new();
        for (name, value) in head.texts() {
            let is_it = |limit: &RateLimitHeaders| limit.remaining == name || limit.reset == name;
            if RATE_LIMITS.iter().any(is_it) && !limits.contains_key(name) {
                limits.insert(name.to_owned(), value.into());
            }
        }
        if !limits.is_empty() {
            let mut metadata = ResponseMetadata::default();
            let limits = Value::Object(limits);
            metadata.extra.insert("rate_limits".to_owned(), limits);
            self.said.identify(metadata);
        }
    }

    #[inline]
    fn line(&mut self, _: &[u8], line: &str) -> Result<bool> {
        if let Some(delta) = DeltaEvent::parse(line, &mut self.surroundings) {
            self.saw_frames = true;
            delta.apply(self)?;
            return Ok(true);
        }
        let Some(event) = PlainEvent::parse(line) else {
            return Ok(false);
        };
        self.saw_frames = true;
        event.apply(self)?;
        Ok(true)
    }

    fn frame(&mut self, name: &str, frame: &Json) -> Result<()> {
        self.saw_frames = true;
        loose::apply(name, frame, self)
    }

    fn is_frame(&self, line: &Json) -> bool {
        loose::is_event(line)
    }

    fn begins_stream(line: &Json) -> bool {
        loose::begins_stream(line)
    }

    fn body_ends(&mut self, _: &[Json]) -> Result<()> {
        if self.saw_message || self.has_ended() || self.said.is_started() {
            return Ok(());
        }
        Err(self
            .reporter
            .protocol("answered with JSON that is neither a message nor an error"))
    }

    fn end_mark(&mut self) {
        self.saw_mark = true;
    }

    fn is_done(&self) -> bool {
        self.is_done || (self.saw_mark && !self.saw_frames)
    }

    fn has_ended(&self) -> bool {
        self.is_done || self.is_whole || !self.stop_reason.is_empty()
    }

    fn conclude(&mut self) -> Result<Finish> {
        if !self.has_ended() {
            return Err(if self.saw_mark && !self.saw_frames {
                self.reporter.empty()
            } else {
                self.reporter.truncated()
            });
        }
        self.blocks.close(&mut self.said)?;
        if self.stop_reason.is_empty() && !self.said.is_started() && !self.is_whole {
            return Err(self.reporter.empty());
        }
        let has_calls = self.blocks.has_calls();
        if self.stop_reason == stop::PAUSE && !has_calls && self.continuations > 0 {
            self.is_paused = true;
            return Ok(Finish::new(stop::reason(stop::PAUSE, false)));
        }
        self.said.begin();
        let was_cut = stop::was_cut(&self.stop_reason);
        let has_calls = self.blocks.finish_calls(was_cut, &mut self.said);
        self.said.updates.push(AgentResponseUpdate::message_end());
        self.report_end();
        let mut finish = Finish::new(stop::reason(&self.stop_reason, has_calls));
        if let Some(usage) = self.report_usage() {
            finish = finish.with_usage(usage);
        }
        Ok(finish)
    }

    fn abandon(&mut self) {
        // What is wrong is told already.
        let _ = self.blocks.close(&mut self.said);
        self.report_usage();
    }

    fn updates(&mut self) -> &mut Vec<AgentResponseUpdate> {
        self.said.take()
    }

    fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }
}

#[cfg(test)]
mod tests;
