//! What a block is, and what its start event says of it.

use std::borrow::Cow;

use raf_wire::{Json, JsonScanner};

/// A block, and what has come of it.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) index: Option<u64>,
    /// Made by a delta that had no block of its kind.
    pub(super) is_stray: bool,
    pub(super) is_closed: bool,
    pub(super) kind: Kind,
}

/// What a block is.
#[derive(Debug)]
pub(crate) enum Kind {
    Text {
        held: String,
        citations: Vec<Json>,
    },
    Thinking {
        held: String,
        says_something: bool,
        signature: String,
    },
    Redacted(String),
    Call(Call),
    /// A block of the server's own, or of a kind that is not known.
    Other {
        part: Json,
        input: String,
    },
}

/// A call for the client.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) caller: Option<Json>,
    /// The arguments of the start event.
    pub(super) start: String,
    /// Arguments that came before it was this block's turn.
    pub(super) held: String,
    pub(super) is_announced: bool,
    pub(super) has_pieces: bool,
}

impl Block {
    /// A block that was opened at an index.
    pub(super) fn new(index: Option<u64>, kind: Kind) -> Self {
        Self {
            index,
            is_stray: false,
            is_closed: false,
            kind,
        }
    }
}

/// A block of text.
pub(super) fn text_block() -> Kind {
    Kind::Text {
        held: String::new(),
        citations: Vec::new(),
    }
}

/// A block of thinking.
pub(super) fn thinking_block() -> Kind {
    Kind::Thinking {
        held: String::new(),
        says_something: false,
        signature: String::new(),
    }
}

/// What a start event opens, read in place, if it is in its plain form: text, thinking or a call, whose
/// arguments are yet to come.
pub(crate) fn scan(scanner: &mut JsonScanner<'_>) -> Option<Kind> {
    let mut kind = None;
    let [mut id, mut name, mut text, mut thinking, mut signature] = [const { None }; 5];
    scanner.object(|scanner, member| {
        let slot = match member {
            "type" => &mut kind,
            "id" => &mut id,
            "name" => &mut name,
            "text" => &mut text,
            "thinking" => &mut thinking,
            "signature" => &mut signature,
            "input" | "citations" | "caller" => return scanner.nothing(),
            _ => return scanner.skip(),
        };
        // Of a member that comes twice the loose reading knows which counts.
        slot.replace(scanner.string()?).is_none().then_some(())
    })?;
    let text_of = |slot: Option<Cow<'_, str>>| slot.unwrap_or_default().into_owned();
    Some(match &*kind? {
        "text" => Kind::Text {
            held: text_of(text),
            citations: Vec::new(),
        },
        "thinking" => {
            let held = text_of(thinking);
            Kind::Thinking {
                says_something: !held.is_empty(),
                held,
                signature: text_of(signature),
            }
        }
        "tool_use" => Kind::Call(Call {
            id: text_of(id),
            name: text_of(name),
            ..Call::default()
        }),
        _ => return None,
    })
}

/// What a start event opens, whatever its form, with all that it says already.
pub(crate) fn of(block: &Json) -> Kind {
    let text = |name: &str| {
        let text = block.get(name).and_then(Json::as_str);
        text.unwrap_or("").to_owned()
    };
    match text("type").as_str() {
        "text" => Kind::Text {
            held: text("text"),
            citations: block
                .get("citations")
                .and_then(Json::as_array)
                .unwrap_or(&[])
                .to_vec(),
        },
        "thinking" => Kind::Thinking {
            held: text("thinking"),
            says_something: !text("thinking").is_empty(),
            signature: text("signature"),
        },
        "redacted_thinking" => Kind::Redacted(text("data")),
        "tool_use" => {
            let id = block.get("id").and_then(Json::scalar_text);
            Kind::Call(Call {
                id: id.unwrap_or_default().into_owned(),
                name: text("name"),
                caller: block.filled("caller").cloned(),
                start: start_arguments(block.get("input")),
                ..Call::default()
            })
        }
        _ => Kind::Other {
            part: block.clone(),
            input: String::new(),
        },
    }
}

/// The arguments of a start event; `{}` is but the place of those that follow.
fn start_arguments(input: Option<&Json>) -> String {
    match input {
        Some(Json::String(text)) => text.clone(),
        Some(input) if !input.is_empty() => input.to_text(),
        _ => String::new(),
    }
}

/// Puts the input that came in pieces into the part of a tool that the server runs.
pub(super) fn fold_input(part: &mut Json, input: &str) {
    let given = match part.get("input") {
        Some(Json::String(text)) => text.clone(),
        None if input.is_empty() => return,
        Some(Json::Null) => "{}".to_owned(),
        _ => String::new(),
    };
    let text = if input.trim().is_empty() {
        &given
    } else {
        input
    };
    if text.trim().is_empty() {
        return;
    }
    let text = raf_wire::arguments::resolve(text.to_owned(), false).text;
    part.set("input", Json::parse(&text).unwrap_or(Json::String(text)));
}
