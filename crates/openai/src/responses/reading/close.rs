//! What goes out of items beyond text: opaque data that must come back, parts of the server's own, and
//! the calls when the response has ended.

use raf_core::{AgentResponseUpdate, Content, ProviderData, RefusalContent, ToolCall};
use raf_wire::{Json, provider_part};
use serde_json::{Map, Value, json};

use super::ending::Ending;
use super::item::{Item, ItemKind};
use super::reply::ResponsesReply;
use crate::responses::parts::{ITEM, MODEL, PLACE};

/// Members of a call that are kept otherwise.
const KNOWN_OF_CALL: &[&str] = &["arguments", "call_id", "name", "status", "type"];

impl ResponsesReply {
    /// Says what must come back of an item that is whole, once.
    pub(super) fn tell(&mut self, at: usize) {
        let item = &self.items.0[at];
        if item.is_told {
            return;
        }
        let place = place(item, at);
        match item.kind {
            ItemKind::Reasoning => self.tell_reasoning(at, place),
            ItemKind::Message if item.is_marked || !item.annotations.is_empty() => {
                self.mark_message(at, place);
            }
            ItemKind::Other => self.tell_part(at, place),
            ItemKind::Custom if self.is_the_servers(item) => self.tell_part(at, place),
            _ => {}
        }
    }

    fn tell_reasoning(&mut self, at: usize, place: u64) {
        let item = &self.items.0[at];
        let Some(whole) = item.value() else { return };
        let is_opaque = whole.filled("encrypted_content").is_some();
        if !is_opaque && item.text.is_empty() {
            return;
        }
        let data = json!({
            ITEM: without_nulls(whole),
            PLACE: place,
            MODEL: self.asked.model,
        });
        let data = Box::new(ProviderData::new(&self.asked.provider, data));
        self.items.0[at].is_told = true;
        self.begin();
        self.updates
            .push(AgentResponseUpdate::ReasoningData { data });
    }

    fn tell_part(&mut self, at: usize, place: u64) {
        let Some(whole) = self.items.0[at].value() else {
            return;
        };
        let mut part = Json::clone(whole);
        part.set(PLACE, Json::Number(place.into()));
        let content = provider_part(&self.asked.provider, &part);
        self.items.0[at].is_told = true;
        self.push_content(content);
    }

    /// Marks the text that came last as this message's: its id and members go back with it.
    fn mark_message(&mut self, at: usize, place: u64) {
        let item = &mut self.items.0[at];
        if item.is_empty_message() {
            return;
        }
        item.is_told = true;
        let mut mark = match item.value().map(|value| &**value) {
            Some(Json::Object(members)) => {
                let members = members.iter();
                let kept =
                    members.filter(|(name, value)| name != "content" && *value != Json::Null);
                Json::Object(kept.cloned().collect())
            }
            _ => Json::Object(vec![("role".to_owned(), Json::from("assistant"))]),
        };
        mark.set("type", Json::from("message"));
        if !item.id.is_empty() {
            mark.set("id", Json::from(item.id.as_str()));
        }
        if !item.annotations.is_empty() {
            mark.set("annotations", Json::Array(item.annotations.clone()));
        }
        mark.set(PLACE, Json::Number(place.into()));
        let content = provider_part(&self.asked.provider, &mark);
        self.push_content(content);
    }

    fn push_content(&mut self, content: Content) {
        self.begin();
        let content = Box::new(content);
        self.updates.push(AgentResponseUpdate::Content { content });
    }

    /// Says what is left of a response that has ended; returns whether it asks for calls.
    pub(super) fn close(&mut self, ending: &Ending) -> bool {
        let order = self.items.order();
        let has_opaque = self.items.0.iter().any(|item| item.is_told);
        for &at in &order {
            self.tell(at);
            let item = &self.items.0[at];
            if has_opaque && item.kind == ItemKind::Message && !item.is_told {
                self.mark_message(at, place(item, at));
            }
        }
        let refusal: String = order
            .iter()
            .map(|&at| self.items.0[at].refusal.whole())
            .collect();
        if !refusal.is_empty() {
            self.push_content(Content::Refusal(RefusalContent::new(refusal)));
        }
        let has_calls = self.close_calls(&order, ending);
        if self.asked.is_stored && !matches!(ending, Ending::Unfinished(_)) {
            self.mark_response();
        }
        has_calls
    }

    /// Marks the message as one that the server holds: the next request goes on behind it.
    fn mark_response(&mut self) {
        let ids = [
            ("id", self.response_id()),
            ("conversation", self.asked.conversation.as_deref()),
        ];
        let ids = ids.into_iter().filter_map(|(name, id)| Some((name, id?)));
        let mut mark = Json::Object(vec![("type".to_owned(), Json::from("response"))]);
        let mut is_held = false;
        for (name, id) in ids {
            is_held = true;
            mark.set(name, Json::from(id));
        }
        if is_held {
            let content = provider_part(&self.asked.provider, &mark);
            self.push_content(content);
        }
    }

    /// Ends the calls, in the order of the answer: position by position, whatever was announced there.
    fn close_calls(&mut self, order: &[usize], ending: &Ending) -> bool {
        let mut ended: Vec<(usize, ToolCall)> = Vec::new();
        for &at in order {
            let item = &self.items.0[at];
            if !item.kind.is_call() || self.is_the_servers(item) {
                continue;
            }
            let call = self.call(item, at, ending);
            let known = ended.iter().find(|(_, other)| other.id() == call.id());
            match known {
                Some((_, other)) if item.position.is_none() && is_same(other, &call) => {}
                Some(_) => ended.push((at, call.to_builder().id(made_up()).build())),
                None => ended.push((at, call)),
            }
        }
        for (at, _) in &ended {
            if self.items.0[*at].position.is_none() {
                self.announce(*at);
            }
        }
        let has_calls = !ended.is_empty();
        for (position, (_, call)) in (0..).zip(ended) {
            self.updates
                .push(AgentResponseUpdate::ToolCallEnd { position, call });
        }
        has_calls
    }

    fn call(&self, item: &Item, at: usize, ending: &Ending) -> ToolCall {
        let id = [&item.call_id, &item.id]
            .into_iter()
            .find(|id| !id.is_empty());
        let id = id.cloned().unwrap_or_else(made_up);
        let was_cut = ending.is_cut();
        let settled = item.arguments.settle(was_cut);
        let is_custom = item.kind == ItemKind::Custom;
        let (text, is_whole) = if is_custom {
            (
                item.arguments.free_text().to_owned(),
                !was_cut || item.is_done,
            )
        } else {
            (settled.text, settled.is_whole)
        };
        let is_whole = is_whole && !(was_cut && item.is_cut);
        let mut members = Map::new();
        if let Some(Json::Object(whole)) = item.value().map(|value| &**value) {
            let is_known = |name: &str| KNOWN_OF_CALL.contains(&name);
            for (name, value) in whole.iter().filter(|(name, _)| !is_known(name)) {
                members.insert(name.clone(), value.to_value());
            }
            members.retain(|_, value| !value.is_null());
        }
        if is_custom {
            members.insert("type".to_owned(), "custom_tool_call".into());
            members.insert("input".to_owned(), text.clone().into());
        }
        if !item.id.is_empty() {
            members.insert("id".to_owned(), item.id.clone().into());
        }
        members.insert("call_id".to_owned(), id.clone().into());
        let mut data = Map::new();
        data.insert(ITEM.to_owned(), Value::Object(members));
        data.insert(PLACE.to_owned(), place(item, at).into());
        let data = Value::Object(data);
        ToolCall::builder(id, &item.name, text)
            .complete(is_whole)
            .provider_data(ProviderData::new(&self.asked.provider, data))
            .build()
    }
}

/// Where the item stands in the answer.
fn place(item: &Item, at: usize) -> u64 {
    item.index
        .unwrap_or_else(|| u64::try_from(at).unwrap_or(u64::MAX))
}

fn made_up() -> String {
    format!("call_{}", raf_core::correlation_id())
}

fn is_same(left: &ToolCall, right: &ToolCall) -> bool {
    left.name() == right.name() && raf_wire::arguments::is_same(left.arguments(), right.arguments())
}

/// The item without the members that are null, which strict servers refuse in a request.
fn without_nulls(item: &Json) -> Value {
    let Value::Object(members) = item.to_value() else {
        return Value::Null;
    };
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(members.collect())
}
