//! One reply, from what its events say to the updates of the stream.

use raf_core::{AgentResponseUpdate, Finish, MessageRole, ResponseMetadata, Result, Usage};
use raf_wire::{Head, Json, Limits, Reporter, WireError, WireReply, exceeded};

use super::asked::Asked;
use super::delta::{Delta, Surroundings};
use super::ending::Ending;
use super::event;
use super::item::{ItemKind, Items, Key, MOST_ITEMS, ThoughtKind};
use super::plain::{Known, PlainEvent};
use crate::wire::usage;

/// The reply as far as it has come.
#[derive(Debug)]
pub(crate) struct ResponsesReply {
    pub(super) updates: Vec<AgentResponseUpdate>,
    pub(super) asked: Asked,
    pub(super) reporter: Reporter,
    request_id: Option<String>,
    pub(super) items: Items,
    surroundings: Surroundings,
    /// The text of the response when it began last.
    begun: String,
    pub(super) most_calls: usize,
    pub(super) most_argument_bytes: usize,
    identity: ResponseMetadata,
    is_started: bool,
    pub(super) announced_calls: u32,
    pub(super) ending: Option<Ending>,
    /// It failed without a word: the next event may have it.
    pub(super) unexplained: Option<WireError>,
    pub(super) usage: Option<Usage>,
    last_sequence: Option<u64>,
    known_until: Option<u64>,
    has_end_mark: bool,
}

impl ResponsesReply {
    pub(crate) fn new(asked: Asked, reporter: Reporter, limits: &Limits) -> Self {
        let mut identity = ResponseMetadata::default();
        identity.response_id.clone_from(&asked.response_id);
        Self {
            updates: Vec::new(),
            asked,
            reporter,
            request_id: None,
            items: Items::default(),
            surroundings: Surroundings::default(),
            begun: String::new(),
            most_calls: limits.calls,
            most_argument_bytes: limits.argument_bytes,
            identity,
            is_started: false,
            announced_calls: 0,
            ending: None,
            unexplained: None,
            usage: None,
            last_sequence: None,
            known_until: None,
            has_end_mark: false,
        }
    }

    /// The response's id, once it is known.
    pub(crate) fn response_id(&self) -> Option<&str> {
        self.identity.response_id.as_deref()
    }

    /// The number of the last event that came.
    pub(crate) fn last_sequence(&self) -> Option<u64> {
        self.last_sequence
    }

    /// Whether the response goes on at the server.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self.ending, Some(Ending::Unfinished(_)))
    }

    /// The response is asked for again, behind what came of it: a server that sends that once more is
    /// not listened to.
    pub(crate) fn goes_on(&mut self) {
        self.ending = None;
        self.has_end_mark = false;
        self.known_until = self.last_sequence;
        for item in &mut self.items.0 {
            item.is_confirmed = false;
        }
    }

    /// Whether an event came before the stream broke off. Numbers say so in a stream that was taken up
    /// again, and nowhere else.
    fn is_known(&self, number: Option<u64>) -> bool {
        number.is_some() && number <= self.known_until
    }

    fn known(&self) -> Known<'_> {
        Known {
            items: &self.items,
            begun: &self.begun,
        }
    }

    /// The response began with this text, if it has any.
    pub(super) fn begins_as(&mut self, text: &str) {
        if !text.is_empty() {
            text.clone_into(&mut self.begun);
        }
    }

    fn check_items(&self) -> Result<()> {
        if self.items.0.len() > MOST_ITEMS {
            return Err(exceeded("items", MOST_ITEMS));
        }
        Ok(())
    }

    pub(super) fn sequence(&mut self, number: Option<u64>) {
        self.last_sequence = self.last_sequence.max(number);
    }

    /// Ids of the reply; the first that says something counts.
    pub(super) fn identify(&mut self, id: &str, model: &str, conversation: Option<&str>) {
        let first = |known: &mut Option<String>, text: &str| {
            if known.is_none() && !text.is_empty() {
                *known = Some(text.to_owned());
            }
        };
        first(&mut self.identity.response_id, id);
        first(&mut self.identity.model, model);
        if let (Some(id), None) = (conversation, &self.asked.conversation) {
            self.asked.conversation = Some(id.to_owned());
        }
    }

    /// Ids of the reply, and what it counts.
    pub(super) fn identify_by(&mut self, response: &Json) {
        let text = |name| response.get(name).and_then(Json::as_str).unwrap_or("");
        let conversation = response.get("conversation");
        let conversation = conversation.and_then(|of| of.as_str().or(of.get("id")?.as_str()));
        self.identify(text("id"), text("model"), conversation);
        self.usage_is(response.present("usage").and_then(usage::read));
    }

    /// Of several reports the last one counts.
    pub(super) fn usage_is(&mut self, reported: Option<Usage>) {
        if reported.is_some() {
            self.usage = reported;
        }
    }

    pub(super) fn text_piece(&mut self, key: Key<'_>, part: u64, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let at = self.items.of_event(ItemKind::Message, key);
        self.items.0[at].text.push(part, piece);
        self.say_text(piece);
    }

    pub(super) fn text_whole(&mut self, key: Key<'_>, part: u64, text: &str) {
        let at = self.items.of_event(ItemKind::Message, key);
        let missing = self.items.0[at].text.missing_of_part(part, text);
        if !missing.is_empty() {
            self.items.0[at].text.push(part, missing);
            self.say_text(missing);
        }
    }

    pub(super) fn say_text(&mut self, text: &str) {
        self.begin();
        let text = text.to_owned();
        self.updates.push(AgentResponseUpdate::TextDelta { text });
    }

    pub(super) fn refusal_piece(&mut self, key: Key<'_>, part: u64, piece: &str) {
        let at = self.items.of_event(ItemKind::Message, key);
        self.items.0[at].refusal.push(part, piece);
    }

    pub(super) fn refusal_whole(&mut self, key: Key<'_>, part: u64, text: &str) {
        let at = self.items.of_event(ItemKind::Message, key);
        let refusal = &mut self.items.0[at].refusal;
        let missing = refusal.missing_of_part(part, text);
        if !missing.is_empty() {
            refusal.push(part, missing);
        }
    }

    pub(super) fn annotation(&mut self, key: Key<'_>, annotation: &Json) {
        let at = self.items.of_event(ItemKind::Message, key);
        let known = &mut self.items.0[at].annotations;
        if !known.contains(annotation) {
            known.push(annotation.clone());
        }
    }

    pub(super) fn thought_piece(
        &mut self,
        key: Key<'_>,
        kind: ThoughtKind,
        part: u64,
        piece: &str,
    ) {
        let at = self.items.of_event(ItemKind::Reasoning, key);
        if !piece.is_empty() {
            self.say_thought(at, kind, part, piece);
        }
    }

    pub(super) fn thought_whole(&mut self, key: Key<'_>, kind: ThoughtKind, part: u64, text: &str) {
        let at = self.items.of_event(ItemKind::Reasoning, key);
        let missing = self.items.0[at].text.missing_of_part(part, text);
        if !missing.is_empty() {
            self.say_thought(at, kind, part, missing);
        }
    }

    /// Says a thought, unless the item shows its other kind. Parts of a summary are paragraphs.
    pub(super) fn say_thought(&mut self, at: usize, kind: ThoughtKind, part: u64, piece: &str) {
        let item = &mut self.items.0[at];
        if *item.thought.get_or_insert(kind) != kind {
            return;
        }
        let is_paragraph =
            kind == ThoughtKind::Summary && !item.text.is_empty() && !item.text.has_part(part);
        item.text.push(part, piece);
        let text = if is_paragraph {
            format!("\n\n{piece}")
        } else {
            piece.to_owned()
        };
        self.begin();
        self.updates
            .push(AgentResponseUpdate::ReasoningDelta { text });
    }

    /// Message and identity go out before anything that is said.
    pub(super) fn begin(&mut self) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        let message_id = self.identity.response_id.as_deref().map(Box::from);
        if self.identity != ResponseMetadata::default() {
            let metadata = Box::new(self.identity.clone());
            self.updates
                .push(AgentResponseUpdate::ResponseMetadata { metadata });
        }
        self.updates.push(AgentResponseUpdate::MessageStart {
            role: MessageRole::Assistant,
            message_id,
        });
    }

    pub(super) fn report_usage(&mut self) {
        if let Some(usage) = &self.usage {
            self.updates.push(AgentResponseUpdate::usage(usage.clone()));
        }
    }
}

impl WireReply for ResponsesReply {
    fn head(&mut self, head: &Head) {
        self.request_id = head.request_id().map(str::to_owned);
    }

    #[inline]
    fn line(&mut self, name: &[u8], line: &str) -> Result<bool> {
        if self.unexplained.is_some() {
            return Ok(false);
        }
        let is_piece = name.is_empty() || name.ends_with(b".delta");
        let delta = is_piece.then(|| Delta::parse(line, &mut self.surroundings));
        match delta.flatten() {
            Some(delta) if self.is_known(delta.sequence) => Ok(true),
            Some(delta) => {
                delta.apply(self)?;
                self.check_items()?;
                Ok(true)
            }
            None => match PlainEvent::parse(line, &self.known()) {
                Some(event) if self.is_known(event.sequence) => Ok(true),
                Some(event) => {
                    event.apply(self)?;
                    self.check_items()?;
                    Ok(true)
                }
                None => Ok(false),
            },
        }
    }

    fn frame(&mut self, name: &str, frame: &Json) -> Result<()> {
        let number = frame.get("sequence_number").and_then(Json::as_count);
        if self.is_known(number) {
            return Ok(());
        }
        event::apply(name, frame, self)?;
        self.check_items()
    }

    fn is_frame(&self, line: &Json) -> bool {
        line.is_object()
    }

    fn begins_stream(line: &Json) -> bool {
        line.get("type").and_then(Json::as_str).is_some()
    }

    fn body_ends(&mut self, _: &[Json]) -> Result<()> {
        if self.has_ended() {
            return Ok(());
        }
        Err(self
            .reporter
            .protocol("answered with JSON that is no response"))
    }

    fn error_event(&mut self, data: &str) -> Result<()> {
        match Json::parse_repaired(data) {
            Ok(event) if event.is_object() => {
                self.failure_is_explained(&event)?;
                self.error_event_of(&event)
            }
            _ => {
                let found = raf_wire::read_body(data.as_bytes());
                Err(self.error(&found))
            }
        }
    }

    /// No end by itself: proxies that swallow an error send it in the stead of one.
    fn end_mark(&mut self) {
        self.has_end_mark = true;
    }

    fn is_done(&self) -> bool {
        self.ending.is_some() || self.has_end_mark
    }

    fn has_ended(&self) -> bool {
        self.ending.is_some() || self.unexplained.is_some()
    }

    fn conclude(&mut self) -> Result<Finish> {
        if let Some(nothing) = self.unexplained.take() {
            return Err(self.error(&nothing));
        }
        let Some(ending) = self.ending.clone() else {
            return Err(self.reporter.truncated());
        };
        if self.asked.can_resume && matches!(ending, Ending::Unfinished(_)) {
            return Ok(Finish::new(ending.reason(false)));
        }
        self.begin();
        let has_calls = self.close(&ending);
        self.updates.push(AgentResponseUpdate::message_end());
        self.updates.push(ending.metadata());
        let mut finish = Finish::new(ending.reason(has_calls));
        self.report_usage();
        if let Some(usage) = self.usage.take() {
            finish = finish.with_usage(usage);
        }
        Ok(finish)
    }

    fn abandon(&mut self) {
        // The run ends it: a stream that breaks off may be taken up again.
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
