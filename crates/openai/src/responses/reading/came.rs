//! An item as an event has it: as a value, or the call of a function, read in place.

use std::borrow::Cow;
use std::sync::Arc;

use raf_wire::{Json, JsonScanner};

use super::call::member_text;
use super::item::{Item, ItemKind, Items};

/// An item of an event, or of the final output.
#[derive(Clone, Debug)]
pub(super) enum Came<'a> {
    /// As a value.
    Value(&'a Json),
    /// As a value that may be kept, and the text that it was read from, where that is known.
    Shared(Arc<Json>, &'a str),
    /// The call of a function, without any member of its own, and the text that it was read from.
    Call(PlainCall<'a>, &'a str),
}

/// An item of the final output.
#[derive(Debug)]
pub(super) enum Final<'a> {
    /// One that was done with the very same text: its place among the items.
    Known(usize),
    /// Any other.
    News(Came<'a>),
}

impl<'a> Final<'a> {
    /// Reads an item in place, unless it is known from the items so far.
    pub(super) fn scan(scanner: &mut JsonScanner<'a>, known: &Items) -> Option<Self> {
        let known = known.0.iter();
        let is_it = |text: &str| !text.is_empty() && scanner.take_text(text);
        match known.map(|of| of.whole_text.as_str()).position(is_it) {
            Some(at) => Some(Self::Known(at)),
            None => Came::scan(scanner).map(Self::News),
        }
    }
}

/// What is kept of an item that is whole.
#[derive(Clone, Debug)]
pub(super) enum Whole {
    /// All of it.
    Value(Arc<Json>),
    /// Nothing: a call that has no member of its own.
    PlainCall,
}

/// The call of a function in its plain form: no member but those that every call has. What is missing or
/// null is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct PlainCall<'a> {
    id: Cow<'a, str>,
    call_id: Cow<'a, str>,
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
    status: Cow<'a, str>,
}

impl<'a> Came<'a> {
    /// Reads an item in place.
    pub(super) fn scan(scanner: &mut JsonScanner<'a>) -> Option<Self> {
        let unread = scanner.clone();
        if let Some(call) = PlainCall::scan(scanner) {
            return Some(Self::Call(call, scanner.text_since(&unread)?));
        }
        *scanner = unread.clone();
        let value = scanner.value().filter(Json::is_object)?;
        Some(Self::Shared(Arc::new(value), scanner.text_since(&unread)?))
    }

    /// It as a value; none of a plain call.
    pub(super) fn value(&self) -> Option<&Json> {
        match self {
            Self::Value(value) => Some(value),
            Self::Shared(value, _) => Some(value),
            Self::Call(..) => None,
        }
    }

    pub(super) fn kind(&self) -> ItemKind {
        self.value().map_or(ItemKind::Function, ItemKind::of)
    }

    /// The id; empty where there is none, as with all texts below.
    pub(super) fn id(&self) -> &str {
        self.text("id", |call| &call.id)
    }

    pub(super) fn call_id(&self) -> &str {
        self.text("call_id", |call| &call.call_id)
    }

    pub(super) fn name(&self) -> &str {
        self.text("name", |call| &call.name)
    }

    pub(super) fn is_incomplete(&self) -> bool {
        self.text("status", |call| &call.status) == "incomplete"
    }

    /// The arguments of a call of this kind.
    pub(super) fn arguments(&self, kind: ItemKind) -> Cow<'_, str> {
        match self {
            Self::Call(call, _) => Cow::Borrowed(&call.arguments),
            Self::Value(value) => member_text(value, arguments_member(kind)),
            Self::Shared(value, _) => member_text(value, arguments_member(kind)),
        }
    }

    /// What is kept of it.
    pub(super) fn whole(&self) -> Whole {
        match self {
            Self::Value(value) => Whole::Value(Arc::new(Json::clone(value))),
            Self::Shared(value, _) => Whole::Value(Arc::clone(value)),
            Self::Call(..) => Whole::PlainCall,
        }
    }

    /// The text that it was read from; empty where that is not known.
    pub(super) fn source(&self) -> &'a str {
        match self {
            Self::Shared(_, text) | Self::Call(_, text) => text,
            Self::Value(_) => "",
        }
    }

    fn text<'b>(&'b self, name: &str, of_call: impl Fn(&'b PlainCall<'a>) -> &'b str) -> &'b str {
        let value = match self {
            Self::Value(value) => *value,
            Self::Shared(value, _) => value,
            Self::Call(call, _) => return of_call(call),
        };
        value.get(name).and_then(Json::as_str).unwrap_or("")
    }
}

impl<'a> PlainCall<'a> {
    /// A call that is known, as it came.
    pub(super) fn of(item: &Item) -> Self {
        Self {
            id: Cow::Owned(item.id.clone()),
            call_id: Cow::Owned(item.call_id.clone()),
            name: Cow::Owned(item.name.clone()),
            arguments: Cow::Owned(item.arguments.of_item.clone()),
            // Of one that was cut it is known.
            status: Cow::Borrowed(""),
        }
    }

    fn scan(scanner: &mut JsonScanner<'a>) -> Option<Self> {
        let mut call = Self::default();
        let mut is_call = false;
        // A member that comes twice is read as a value: which of them counts is known there.
        let mut has_come = [false; 5];
        scanner.object(|scanner, name| {
            let (at, text) = match name {
                "id" => (0, &mut call.id),
                "call_id" => (1, &mut call.call_id),
                "name" => (2, &mut call.name),
                "arguments" => (3, &mut call.arguments),
                "status" => (4, &mut call.status),
                "type" if !is_call => {
                    is_call = scanner.string()? == "function_call";
                    return is_call.then_some(());
                }
                "type" => return None,
                _ => return scanner.null().then_some(()),
            };
            if std::mem::replace(&mut has_come[at], true) {
                return None;
            }
            if !scanner.null() {
                *text = scanner.string()?;
            }
            Some(())
        })?;
        is_call.then_some(call)
    }
}

/// The member that has the arguments.
pub(super) fn arguments_member(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Custom => "input",
        _ => "arguments",
    }
}
