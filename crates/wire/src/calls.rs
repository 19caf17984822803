//! Puts tool calls together from their pieces, by rules that hold for every server.
//!
//! An index is a key and never a position; ids and names may be missing, late, repeated or renewed.
//! A call is closed when the reply ends, never at the first JSON that can be read.

use std::borrow::Cow;

use raf_core::{AgentResponseUpdate, ProviderData, Result, ToolCall, ToolCallHead};
use serde_json::{Map, Value};

use crate::arguments::{is_filled_object, is_object, is_same, resolve};
use crate::limits::{Limits, exceeded};

/// The key of the legacy `function_call`, which has no index of its own. Beside `tool_calls` it says
/// the same once more.
pub const LEGACY_CALL: u64 = u64::MAX;

/// How many bytes most argument texts have at most: room is made for them at once.
const USUAL: usize = 64;

/// One element of a `tool_calls` array. Empty texts mean absent.
#[derive(Debug, Default)]
pub struct CallPiece<'a> {
    /// The provider's number of the call: a key, not a position.
    pub index: Option<u64>,
    /// The call's id.
    pub id: &'a str,
    /// The tool's name, or a piece of it.
    pub name: &'a str,
    /// A piece of the argument text.
    pub arguments: Cow<'a, str>,
    /// Members that the provider wants back.
    pub extra: Option<Map<String, Value>>,
}

/// The calls of one reply.
#[derive(Debug)]
pub struct CallAssembler {
    most_calls: usize,
    most_argument_bytes: usize,
    calls: Vec<Call>,
    last_touched: Option<usize>,
    /// Counts `tool_calls` arrays: two elements of one array are not the same call.
    array: u64,
    /// How many calls have been announced, in order.
    announced: usize,
    /// A call repeats an id: whether it is a call of its own is known at the end only, and so is the
    /// position of those behind it.
    is_held: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
    array: u64,
}

impl CallAssembler {
    /// No call yet.
    pub fn new(limits: &Limits) -> Self {
        Self {
            most_calls: limits.calls,
            most_argument_bytes: limits.argument_bytes,
            calls: Vec::new(),
            last_touched: None,
            array: 0,
            announced: 0,
            is_held: false,
        }
    }

    /// Whether no call has come.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// A new `tool_calls` array begins.
    pub fn begin_array(&mut self) {
        self.array += 1;
    }

    /// Takes an element in, and says what can be said of it.
    pub fn push(
        &mut self,
        piece: CallPiece<'_>,
        updates: &mut Vec<AgentResponseUpdate>,
    ) -> Result<()> {
        let Some(at) = self.place(&piece)? else {
            return Ok(());
        };
        self.last_touched = Some(at);
        let call = &mut self.calls[at];
        call.array = self.array;
        if call.id.is_empty() {
            call.id.push_str(piece.id);
        }
        merge_name(&mut call.name, piece.name);
        if let Some(extra) = piece.extra {
            call.extra.extend(extra);
        }
        if call.arguments.len() + piece.arguments.len() + call.name.len() > self.most_argument_bytes
        {
            return Err(exceeded("argument_bytes", self.most_argument_bytes));
        }
        if call.arguments.is_empty() {
            call.arguments.reserve(piece.arguments.len().max(USUAL));
        }
        call.arguments.push_str(&piece.arguments);
        if at < self.announced {
            if !piece.arguments.is_empty() {
                updates.push(arguments(at, piece.arguments.into_owned()));
            }
        } else {
            self.announce(updates);
        }
        Ok(())
    }

    /// Which call the piece belongs to; opened if it is a new one. `None` for a piece that says
    /// nothing.
    fn place(&mut self, piece: &CallPiece<'_>) -> Result<Option<usize>> {
        let known = self.find(piece);
        if let Some(at) = known {
            let call = &self.calls[at];
            if !self.is_new_call(call, piece) {
                if is_repetition(call, piece) {
                    return Ok(None);
                }
                return Ok(Some(at));
            }
        } else if piece.id.is_empty() && piece.name.is_empty() && piece.arguments.trim().is_empty()
        {
            return Ok(None);
        }
        if self.calls.len() >= self.most_calls {
            return Err(exceeded("calls", self.most_calls));
        }
        let repeats_id = !piece.id.is_empty() && self.calls.iter().any(|call| call.id == piece.id);
        self.is_held |= repeats_id || piece.index == Some(LEGACY_CALL) && !self.calls.is_empty();
        self.calls.push(Call {
            index: piece.index,
            ..Call::default()
        });
        Ok(Some(self.calls.len() - 1))
    }

    /// The call that the piece's keys name.
    fn find(&self, piece: &CallPiece<'_>) -> Option<usize> {
        let last = |matches: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(matches);
        if let Some(index) = piece.index {
            let at_index = |call: &Call| call.index == Some(index);
            let latest = last(&at_index)?;
            if !piece.id.is_empty() && self.calls[latest].id != piece.id {
                let by_id = last(&|call| at_index(call) && call.id == piece.id);
                return by_id.or(Some(latest));
            }
            return Some(latest);
        }
        if !piece.id.is_empty()
            && let Some(at) = last(&|call| call.id == piece.id)
        {
            return Some(at);
        }
        if piece.name.is_empty() {
            return self.last_touched;
        }
        None
    }

    /// Whether the piece, though its keys name this call, begins another one.
    fn is_new_call(&self, call: &Call, piece: &CallPiece<'_>) -> bool {
        if piece.name.is_empty() {
            return false;
        }
        if call.array == self.array {
            return true;
        }
        match (call.id.is_empty(), piece.id.is_empty()) {
            (false, false) if call.id != piece.id => true,
            (true, true) => is_object(&call.arguments),
            (false, false) => {
                call.name == piece.name
                    && is_filled_object(&piece.arguments)
                    && is_filled_object(&call.arguments)
                    && !is_same(&call.arguments, &piece.arguments)
            }
            _ => false,
        }
    }

    /// Announces the calls whose tool is known, in order.
    fn announce(&mut self, updates: &mut Vec<AgentResponseUpdate>) {
        while !self.is_held
            && let Some(call) = self.calls.get(self.announced)
            && !call.name.is_empty()
        {
            start(self.announced, call, updates);
            self.announced += 1;
        }
    }

    /// Ends the calls of a reply that has ended; returns whether there are any.
    ///
    /// Of a reply that was cut (by the length limit or a filter) the calls that miss something are
    /// marked as incomplete.
    pub fn finish(
        &mut self,
        reply_was_cut: bool,
        provider: &str,
        updates: &mut Vec<AgentResponseUpdate>,
    ) -> bool {
        let mut ended: Vec<(String, ToolCall)> = Vec::new();
        let announced = self.announced;
        for (place, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            if call.name.is_empty() && call.arguments.trim().is_empty() {
                continue;
            }
            let resolved = resolve(call.arguments.clone(), reply_was_cut);
            let is_known = |(id, other): &(String, ToolCall)| {
                (call.index == Some(LEGACY_CALL) || (!call.id.is_empty() && *id == call.id))
                    && other.name() == call.name
                    && is_same(other.arguments(), &resolved.text)
            };
            if place >= announced && ended.iter().any(is_known) {
                continue;
            }
            let position = ended.len();
            if place >= announced {
                start(position, &call, updates);
            }
            let is_taken = ended.iter().any(|(_, other)| other.id() == call.id);
            let id = if call.id.is_empty() || is_taken {
                format!("call_{}", raf_core::correlation_id())
            } else {
                call.id.clone()
            };
            let mut builder =
                ToolCall::builder(id, call.name, resolved.text).complete(resolved.whole);
            if !call.extra.is_empty() {
                let data = Value::Object(call.extra);
                builder = builder.provider_data(ProviderData::new(provider, data));
            }
            ended.push((call.id, builder.build()));
        }
        let any = !ended.is_empty();
        updates.extend(ended.into_iter().enumerate().map(|(position, (_, call))| {
            AgentResponseUpdate::ToolCallEnd {
                position: number(position),
                call,
            }
        }));
        any
    }
}

/// Whether the piece sends once more, under the same id, what the call already has.
fn is_repetition(call: &Call, piece: &CallPiece<'_>) -> bool {
    !piece.name.is_empty()
        && call.id == piece.id
        && call.name == piece.name
        && is_filled_object(&piece.arguments)
        && is_same(&call.arguments, &piece.arguments)
}

/// A name that comes again is the same, one that goes on where the first began replaces it, any
/// other is its next piece.
fn merge_name(name: &mut String, piece: &str) {
    if piece.is_empty() || name == piece {
        return;
    }
    if piece.starts_with(name.as_str()) {
        name.clear();
    }
    name.push_str(piece);
}

fn start(position: usize, call: &Call, updates: &mut Vec<AgentResponseUpdate>) {
    updates.push(AgentResponseUpdate::ToolCallStart {
        position: number(position),
        call: Box::new(ToolCallHead::new(&call.id, &call.name)),
    });
    if !call.arguments.is_empty() {
        updates.push(arguments(position, call.arguments.clone()));
    }
}

fn arguments(position: usize, delta: String) -> AgentResponseUpdate {
    AgentResponseUpdate::ToolCallArgs {
        position: number(position),
        delta,
    }
}

fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
