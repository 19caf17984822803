//! Items that are announced, done, and part of the final output.

use std::borrow::Cow;
use std::sync::Arc;

use raf_core::{AgentResponseUpdate, Result, ToolCallHead};
use raf_wire::{Json, exceeded, read_error};

use super::call::Arguments;
use super::came::{Came, Final, PlainCall};
use super::ending::Ending;
use super::event::{part_texts, text};
use super::item::{Item, ItemKind, Key, ThoughtKind};
use super::reply::ResponsesReply;

/// Members of a message that need not go back, since they are known otherwise.
const PLAIN_MEMBERS: &[&str] = &["id", "type", "role", "status", "content"];

impl ResponsesReply {
    pub(super) fn item_announced(&mut self, item: &Came<'_>, index: Option<u64>) -> Result<()> {
        let at = self.items.announced(item, index);
        let known = &mut self.items.0[at];
        if known.kind.is_call() {
            known.arguments.announced = item.arguments(known.kind).into_owned();
        }
        self.announce_calls()
    }

    /// An item is done.
    pub(super) fn item_done(&mut self, item: &Came<'_>, index: Option<u64>) -> Result<()> {
        let at = self.items.done(item, index);
        let known = &mut self.items.0[at];
        known.is_done = true;
        // Rotating ids: what is opaque goes back with the id that came with it.
        known.rename(item.id());
        if known.kind.is_call() {
            known.arguments.of_item = item.arguments(known.kind).into_owned();
        }
        known.whole = Some(item.whole());
        // The text of a call that is not told from all that is known of it is not kept.
        let is_itself =
            known.id == item.id() && known.call_id == item.call_id() && known.name == item.name();
        let is_kept = item.value().is_some() || is_itself && !known.call_id.is_empty();
        let text = if is_kept { item.source() } else { "" };
        text.clone_into(&mut known.whole_text);
        self.limit_argument_bytes(at)?;
        self.fill(at, item);
        self.announce_calls()?;
        self.tell(at);
        Ok(())
    }

    pub(super) fn argument_piece(
        &mut self,
        kind: ItemKind,
        key: Key<'_>,
        piece: Cow<'_, str>,
    ) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let at = self.items.of_event(kind, key);
        let item = &mut self.items.0[at];
        item.arguments.push(&piece);
        if let Some(position) = item.position {
            let delta = piece.into_owned();
            self.updates
                .push(AgentResponseUpdate::ToolCallArgs { position, delta });
        }
        self.limit_argument_bytes(at)
    }

    pub(super) fn arguments_done(
        &mut self,
        kind: ItemKind,
        key: Key<'_>,
        arguments: Cow<'_, str>,
        name: &str,
    ) {
        let at = self.items.of_event(kind, key);
        let item = &mut self.items.0[at];
        item.arguments.done = arguments.into_owned();
        if item.name.is_empty() {
            name.clone_into(&mut item.name);
        }
    }

    /// Announces the calls that can be: in order of arrival, as soon as the name is known and the id
    /// is no other call's.
    fn announce_calls(&mut self) -> Result<()> {
        let mut count = 0;
        for at in 0..self.items.0.len() {
            let item = &self.items.0[at];
            if !item.kind.is_call() || self.is_the_servers(item) {
                continue;
            }
            count += 1;
            if count > self.most_calls {
                return Err(exceeded("calls", self.most_calls));
            }
            if item.position.is_some() {
                continue;
            }
            let earlier = &self.items.0[..at];
            let repeats = earlier
                .iter()
                .any(|other| other.kind.is_call() && other.has_id(&item.call_id));
            if item.name.is_empty() || repeats {
                return Ok(());
            }
            self.announce(at);
        }
        Ok(())
    }

    pub(super) fn announce(&mut self, at: usize) {
        self.begin();
        let position = self.announced_calls;
        self.announced_calls += 1;
        let item = &mut self.items.0[at];
        item.position = Some(position);
        let label = if item.call_id.is_empty() {
            &item.id
        } else {
            &item.call_id
        };
        let call = Box::new(ToolCallHead::new(label, &item.name));
        self.updates
            .push(AgentResponseUpdate::ToolCallStart { position, call });
        if !item.arguments.pieces.is_empty() {
            let delta = item.arguments.pieces.clone();
            self.updates
                .push(AgentResponseUpdate::ToolCallArgs { position, delta });
        }
    }

    /// A custom call of a tool that nobody declared is one of the server's own (xAI: symfony/ai#2382).
    pub(super) fn is_the_servers(&self, item: &Item) -> bool {
        let is_declared = |tools: &Vec<String>| tools.contains(&item.name);
        item.kind == ItemKind::Custom
            && !item.name.is_empty()
            && self
                .asked
                .tools
                .as_ref()
                .is_some_and(|tools| !is_declared(tools))
    }

    /// Says what an item as a whole has beyond its pieces.
    fn fill(&mut self, at: usize, item: &Came<'_>) {
        let Some(item) = item.value() else { return };
        match self.items.0[at].kind {
            ItemKind::Message => self.fill_message(at, item),
            ItemKind::Reasoning => {
                let summary = part_texts(item.get("summary"), &["summary_text"], "text");
                let open = part_texts(item.get("content"), &["reasoning_text", "text"], "text");
                let order = match self.items.0[at].thought {
                    Some(ThoughtKind::Text) => {
                        [(ThoughtKind::Text, open), (ThoughtKind::Summary, summary)]
                    }
                    _ => [(ThoughtKind::Summary, summary), (ThoughtKind::Text, open)],
                };
                for (kind, texts) in order {
                    self.fill_thought(at, kind, &texts);
                }
            }
            _ => {}
        }
    }

    fn fill_thought(&mut self, at: usize, kind: ThoughtKind, texts: &[String]) {
        let whole = texts.concat();
        if self.items.0[at].text.missing_of_whole(&whole).is_empty() {
            return;
        }
        for (part, text) in (0..).zip(texts) {
            let missing = self.items.0[at].text.missing_of_part(part, text).to_owned();
            if !missing.is_empty() {
                self.say_thought(at, kind, part, &missing);
            }
        }
    }

    fn fill_message(&mut self, at: usize, item: &Json) {
        let content = item.get("content");
        let whole = part_texts(content, &["output_text", "text"], "text").concat();
        let missing = self.items.0[at].text.missing_of_whole(&whole).to_owned();
        if !missing.is_empty() {
            self.items.0[at].text.push(u64::MAX, &missing);
            self.say_text(&missing);
        }
        let refusal = part_texts(content, &["refusal"], "refusal").concat();
        let known = &mut self.items.0[at];
        let missing = known.refusal.missing_of_whole(&refusal).to_owned();
        if !missing.is_empty() {
            known.refusal.push(u64::MAX, &missing);
        }
        let parts = content.and_then(Json::as_array).unwrap_or(&[]);
        for part in parts {
            let annotations = part.get("annotations").and_then(Json::as_array);
            for annotation in annotations.unwrap_or(&[]) {
                if !known.annotations.contains(annotation) {
                    known.annotations.push(annotation.clone());
                }
            }
        }
        if let Json::Object(members) = item {
            let is_plain = |name: &String| PLAIN_MEMBERS.contains(&name.as_str());
            known.is_marked |= members
                .iter()
                .any(|(name, value)| !is_plain(name) && !value.is_empty());
        }
    }

    /// The response ended: its last form fills what is missing, and says how.
    pub(super) fn ends(&mut self, word: &str, response: &Json) -> Result<()> {
        self.identify_by(response);
        let details = response.present("incomplete_details");
        let reason = details.map(|details| text(details, "reason"));
        let ending = Ending::of(word, text(response, "status"), reason);
        let output = response.get("output").and_then(Json::as_array);
        let output = output.unwrap_or(&[]).iter();
        self.confirm_all(output.map(|item| Final::News(Came::Value(item))))?;
        let is_silent = self.items.0.iter().all(Item::is_empty_message);
        if let (true, Some(text)) = (
            is_silent,
            response.get("output_text").and_then(Json::as_str),
        ) {
            self.text_whole(Key::default(), 0, text);
        }
        self.error_of(response)?;
        match ending {
            Some(ending) => {
                self.ending = Some(ending);
                Ok(())
            }
            None => self.fails(response.filled("error").map(read_error).unwrap_or_default()),
        }
    }

    /// Takes in the final output.
    pub(super) fn confirm_all<'a>(
        &mut self,
        output: impl IntoIterator<Item = Final<'a>>,
    ) -> Result<()> {
        for (place, item) in (0..).zip(output) {
            match item {
                Final::News(item) => self.confirm(&item, place)?,
                Final::Known(at) => self.confirm_known(at, place)?,
            }
        }
        Ok(())
    }

    /// Takes in an item that was done with the same text.
    fn confirm_known(&mut self, at: usize, place: u64) -> Result<()> {
        let known = &self.items.0[at];
        if let Some(value) = known.value() {
            let item = Came::Shared(Arc::clone(value), "");
            return self.confirm(&item, place);
        }
        let is_it = |of: &Item| {
            let has_id = of.has_id(&known.id) || of.has_id(&known.call_id);
            of.kind == known.kind && !of.is_confirmed && has_id
        };
        if self.items.0.iter().position(is_it) != Some(at) {
            let item = Came::Call(PlainCall::of(known), "");
            return self.confirm(&item, place);
        }
        let known = &mut self.items.0[at];
        known.is_confirmed = true;
        let Arguments {
            of_item, of_output, ..
        } = &mut known.arguments;
        of_output.clone_from(of_item);
        self.announce_calls()
    }

    /// Takes an item of the final output for the one that was streamed: by id, else by place, else by
    /// what it says. What is left is news, unless it says nothing.
    fn confirm(&mut self, item: &Came<'_>, place: u64) -> Result<()> {
        let kind = item.kind();
        let (id, call_id) = (item.id(), item.call_id());
        let free = |of: &Item| of.kind == kind && !of.is_confirmed;
        let items = &self.items.0;
        let has_indices = items.iter().any(|of| of.index.is_some());
        let by_id = items
            .iter()
            .position(|of| free(of) && (of.has_id(id) || of.has_id(call_id)));
        let by_place = || {
            let is_there = |at: usize, of: &Item| {
                if has_indices {
                    of.index == Some(place)
                } else {
                    u64::try_from(at) == Ok(place)
                }
            };
            let found = items.iter().enumerate();
            let mut found = found.filter(|(at, of)| free(of) && is_there(*at, of));
            found.next().map(|(at, _)| at)
        };
        let by_content = || {
            items
                .iter()
                .position(|of| free(of) && says_the_same(of, item))
        };
        let known = by_id.or_else(by_place).or_else(by_content);
        if known.is_none() && kind == ItemKind::Message && is_silent(item) {
            return Ok(());
        }
        let index = has_indices.then_some(place);
        let index = index.filter(|index| items.iter().all(|of| of.index != Some(*index)));
        let at = known.unwrap_or_else(|| self.items.make(kind, Key { index, id }));
        self.items.learn(at, item);
        let known = &mut self.items.0[at];
        known.is_confirmed = true;
        if kind.is_call() {
            known.arguments.of_output = item.arguments(kind).into_owned();
            self.limit_argument_bytes(at)?;
        }
        let known = &mut self.items.0[at];
        if known.whole.is_none() {
            known.whole = Some(item.whole());
        }
        self.fill(at, item);
        self.announce_calls()?;
        self.tell(at);
        Ok(())
    }
}

fn is_silent(message: &Came<'_>) -> bool {
    let content = message.value().and_then(|message| message.get("content"));
    let texts = part_texts(content, &["output_text", "text"], "text").concat();
    let refusals = part_texts(content, &["refusal"], "refusal").concat();
    texts.is_empty() && refusals.is_empty()
}

fn says_the_same(known: &Item, item: &Came<'_>) -> bool {
    let member = |name: &str| item.value()?.get(name);
    match known.kind {
        ItemKind::Message => {
            let texts = part_texts(member("content"), &["output_text", "text"], "text");
            !known.text.is_empty() && texts.concat() == known.text.whole()
        }
        ItemKind::Reasoning => {
            let summary = part_texts(member("summary"), &["summary_text"], "text").concat();
            let open = part_texts(member("content"), &["reasoning_text", "text"], "text").concat();
            [summary, open]
                .iter()
                .any(|text| text == known.text.whole())
        }
        ItemKind::Function | ItemKind::Custom => {
            let arguments = item.arguments(known.kind);
            item.name() == known.name
                && raf_wire::arguments::is_same(&arguments, &known.arguments.settle(false).text)
        }
        ItemKind::Other => known.value().map(|value| &**value) == item.value(),
    }
}
