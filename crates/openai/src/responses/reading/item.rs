//! One item of a response as far as it has come, and the list of them: which item does an event mean?

use std::sync::Arc;

use raf_wire::Json;

use super::call::Arguments;
use super::came::{Came, Whole};
use super::spoken::Spoken;

/// What an event can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    /// `function_call`.
    Function,
    /// `custom_tool_call`.
    Custom,
    /// Anything else: kept as it is.
    Other,
}

impl ItemKind {
    /// The kind of an item by its `type`; without one, a role makes a message.
    pub(super) fn of(item: &Json) -> Self {
        match item.get("type").and_then(Json::as_str).unwrap_or("") {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" => Self::Function,
            "custom_tool_call" => Self::Custom,
            "" if item.present("role").is_some() => Self::Message,
            _ => Self::Other,
        }
    }

    pub(super) fn is_call(self) -> bool {
        matches!(self, Self::Function | Self::Custom)
    }
}

/// What an event says of which item it means. Everything may be missing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
}

/// Which of its two texts an item of reasoning shows: the one that came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThoughtKind {
    Summary,
    Text,
}

/// One item.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says what has come so far"
)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    pub(super) index: Option<u64>,
    /// Ids that it has had beside `id` and `call_id`.
    other_ids: Vec<String>,
    /// Announced, or done: a delta alone may have made it.
    pub(super) is_announced: bool,
    pub(super) is_done: bool,
    /// As it came when it was done.
    pub(super) whole: Option<Whole>,
    /// The text that `whole` was read from; empty where it is not kept.
    pub(super) whole_text: String,
    /// The id that came with `whole`, else the first one.
    pub(super) id: String,
    pub(super) text: Spoken,
    pub(super) refusal: Spoken,
    pub(super) thought: Option<ThoughtKind>,
    pub(super) call_id: String,
    pub(super) name: String,
    pub(super) arguments: Arguments,
    pub(super) is_cut: bool,
    /// The call's position among the calls, once it was announced as an update.
    pub(super) position: Option<u32>,
    /// Its opaque data went out as an update.
    pub(super) is_told: bool,
    /// Of a message: what came of annotations.
    pub(super) annotations: Vec<Json>,
    /// Of a message: it has a member that must go back.
    pub(super) is_marked: bool,
    /// An item of the final output was taken for this one.
    pub(super) is_confirmed: bool,
}

impl Item {
    fn new(kind: ItemKind, key: Key<'_>) -> Self {
        Self {
            kind,
            index: key.index,
            other_ids: Vec::new(),
            is_announced: false,
            is_done: false,
            whole: None,
            whole_text: String::new(),
            id: String::new(),
            text: Spoken::default(),
            refusal: Spoken::default(),
            thought: None,
            call_id: String::new(),
            name: String::new(),
            arguments: Arguments::default(),
            is_cut: false,
            position: None,
            is_told: false,
            annotations: Vec::new(),
            is_marked: false,
            is_confirmed: false,
        }
    }

    /// As it came when it was done; none of a plain call.
    pub(super) fn value(&self) -> Option<&Arc<Json>> {
        match &self.whole {
            Some(Whole::Value(value)) => Some(value),
            _ => None,
        }
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        !id.is_empty()
            && (self.id == id || self.call_id == id || self.other_ids.iter().any(|of| of == id))
    }

    fn has_ids(&self) -> bool {
        !self.id.is_empty() || !self.call_id.is_empty() || !self.other_ids.is_empty()
    }

    pub(super) fn learn_id(&mut self, id: &str) {
        if self.id.is_empty() {
            id.clone_into(&mut self.id);
        } else if !id.is_empty() && !self.has_id(id) {
            self.other_ids.push(id.to_owned());
        }
    }

    fn learn_call_id(&mut self, call_id: &str) {
        if self.call_id.is_empty() {
            call_id.clone_into(&mut self.call_id);
        } else if !call_id.is_empty() && !self.has_id(call_id) {
            self.other_ids.push(call_id.to_owned());
        }
    }

    /// Goes by this id from now on.
    pub(super) fn rename(&mut self, id: &str) {
        if !id.is_empty() && self.id != id {
            let former = std::mem::replace(&mut self.id, id.to_owned());
            self.other_ids.push(former);
        }
    }

    /// Whether the item says something by itself.
    pub(super) fn is_empty_message(&self) -> bool {
        self.kind == ItemKind::Message && self.text.is_empty() && self.refusal.is_empty()
    }
}

/// How many items a response may have: each event looks for its own among them.
pub(super) const MOST_ITEMS: usize = 4096;

/// The items of a response, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Items(pub(super) Vec<Item>);

impl Items {
    /// The item that a piece or a snapshot means; made if there is none.
    pub(super) fn of_event(&mut self, kind: ItemKind, key: Key<'_>) -> usize {
        match self.find(kind, key) {
            Some(at) => {
                self.0[at].learn_id(key.id);
                at
            }
            None => self.make(kind, key),
        }
    }

    /// The item that is announced. A second announcement is of the same item only if ids and index
    /// say so; else it is a new one, whatever its index.
    pub(super) fn announced(&mut self, item: &Came<'_>, index: Option<u64>) -> usize {
        let kind = item.kind();
        let (id, call_id) = (item.id(), item.call_id());
        let known = self.0.iter().rposition(|of| {
            let same_id = of.has_id(id) || of.has_id(call_id);
            let same_call = call_id.is_empty() || of.call_id.is_empty() || of.call_id == call_id;
            of.kind == kind
                && of.index == index
                && same_call
                && (same_id || (!of.is_announced && !of.is_done))
        });
        let key = Key { index, id };
        let at = known.unwrap_or_else(|| self.make(kind, key));
        self.0[at].is_announced = true;
        self.learn(at, item);
        at
    }

    /// The item that is done.
    pub(super) fn done(&mut self, item: &Came<'_>, index: Option<u64>) -> usize {
        let kind = item.kind();
        let (id, call_id) = (item.id(), item.call_id());
        let found = self
            .find(kind, Key { index, id })
            .or_else(|| self.by_id(kind, call_id));
        let found = found.filter(|&at| {
            let known = &self.0[at];
            let is_another = !call_id.is_empty() && known.call_id != call_id && !known.has_id(id);
            let is_elsewhere = index.is_some() && known.index.is_some() && known.index != index;
            !(known.is_done
                && (is_elsewhere || is_another || (call_id.is_empty() && !known.has_id(id))))
        });
        let at = found.unwrap_or_else(|| self.make(kind, Key { index, id }));
        self.learn(at, item);
        at
    }

    /// What an item says of itself.
    pub(super) fn learn(&mut self, at: usize, item: &Came<'_>) {
        let (id, call_id) = (item.id(), item.call_id());
        let known = &mut self.0[at];
        known.learn_id(id);
        known.learn_call_id(call_id);
        if known.name.is_empty() {
            item.name().clone_into(&mut known.name);
        }
        known.is_cut |= item.is_incomplete();
    }

    /// The places of the items in the order of the answer: by index where all have one of their own,
    /// else as they arrived.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.0.len()).collect();
        let mut indices: Vec<u64> = self.0.iter().filter_map(|item| item.index).collect();
        indices.sort_unstable();
        indices.dedup();
        if indices.len() == self.0.len() {
            places.sort_by_key(|&at| self.0[at].index);
        }
        places
    }

    pub(super) fn make(&mut self, kind: ItemKind, key: Key<'_>) -> usize {
        let mut item = Item::new(kind, key);
        item.learn_id(key.id);
        self.0.push(item);
        self.0.len() - 1
    }

    fn last(&self, kind: ItemKind, matches: impl Fn(&Item) -> bool) -> Option<usize> {
        self.0
            .iter()
            .rposition(|item| item.kind == kind && matches(item))
    }

    pub(super) fn by_id(&self, kind: ItemKind, id: &str) -> Option<usize> {
        self.last(kind, |item| item.has_id(id))
    }

    fn find(&self, kind: ItemKind, key: Key<'_>) -> Option<usize> {
        let Key { index, id } = key;
        let both = || {
            index?;
            self.last(kind, |item| item.index == index && item.has_id(id))
        };
        let by_index = || {
            index?;
            self.last(kind, |item| item.index == index)
        };
        let nameless = |item: &Item| {
            // With an index: of servers that send it with pieces only.
            !item.is_done && !item.has_ids() && (index.is_none() || item.index.is_none())
        };
        let any_open = |item: &Item| {
            !item.is_done && id.is_empty() && (index.is_none() || item.index.is_none())
        };
        both()
            .or_else(|| self.by_id(kind, id))
            .or_else(by_index)
            .or_else(|| self.last(kind, nameless))
            .or_else(|| self.last(kind, any_open))
    }
}
