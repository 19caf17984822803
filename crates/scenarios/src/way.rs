//! The ways that a case is played in, and which of them it cannot be played in.

use std::fmt;

use raf_testing::EndpointWire;

use crate::format::{Amount, Break, Does, Mode, ReplyPart, Tool};
use crate::load::{Action, Scenario};

/// In which form a leg is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The stream, item by item, then folded.
    Stream,
    /// `get_response`.
    Fold,
}

/// What becomes of the state at each pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// It stays in memory, with its client.
    Nothing,
    /// The conversation goes to JSON and back, to a fresh client with the same store.
    SameStore,
    /// Conversation and paused run go to JSON and back, to a fresh client with an empty store.
    NewProcess,
    /// As in a new process, and the store is there too: its record wins.
    StoreAndValue,
    /// The loop writes ahead to a durable store. Behind each leg, paused or not, the store is closed and
    /// opened again, for a fresh client; the conversation goes to JSON and back.
    Reopened(DurableStore),
    /// As reopened, but nobody closes the store: the next process finds what is there at that moment,
    /// hours later. Where the caller drops a leg, that moment is before the drop. A leg that brings nothing
    /// but answers goes on by the store alone: they are kept there, and the messages come from its journal.
    Killed(DurableStore),
}

impl Reload {
    /// The durable store that is reloaded from, if it is one.
    pub fn durable(self) -> Option<DurableStore> {
        match self {
            Self::Reopened(store) | Self::Killed(store) => Some(store),
            Self::Nothing | Self::SameStore | Self::NewProcess | Self::StoreAndValue => None,
        }
    }
}

/// A store that outlives the process that writes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DurableStore {
    /// The in-memory store, which says that it is durable.
    Memory,
    /// A file of SQLite, in a folder of its own.
    Sqlite,
    /// A schema of its own on a PostgreSQL server.
    Postgres,
}

impl DurableStore {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Sqlite, Self::Postgres];

    /// The reloads from it. Memory dies with its process.
    pub(crate) fn reloads(self) -> &'static [Reload] {
        match self {
            Self::Memory => &[Reload::Reopened(Self::Memory)],
            Self::Sqlite => &[Reload::Reopened(Self::Sqlite), Reload::Killed(Self::Sqlite)],
            Self::Postgres => &[
                Reload::Reopened(Self::Postgres),
                Reload::Killed(Self::Postgres),
            ],
        }
    }
}

impl fmt::Display for DurableStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        })
    }
}

/// How the model is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The scripted client, on a paused clock.
    Scripted,
    /// The provider of this protocol, against the scripted endpoint on loopback, in real time.
    Http(EndpointWire),
}

/// One way of playing a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The form.
    pub form: Form,
    /// What becomes of the state.
    pub reload: Reload,
    /// The wire.
    pub wire: Wire,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Stream => "stream",
            Form::Fold => "fold",
        };
        let wire = match self.wire {
            Wire::Scripted => "",
            Wire::Http(EndpointWire::ChatCompletions) => " over Chat Completions",
            Wire::Http(EndpointWire::Messages) => " over Messages",
            Wire::Http(EndpointWire::Responses) => " over Responses",
            Wire::Http(_) => " over HTTP",
        };
        write!(f, "{form}{wire}")?;
        match self.reload {
            Reload::Nothing => Ok(()),
            Reload::SameStore => f.write_str(", reloaded with its store"),
            Reload::NewProcess => f.write_str(", reloaded in a new process"),
            Reload::StoreAndValue => f.write_str(", reloaded with store and value"),
            Reload::Reopened(store) => write!(f, ", reopened from {store}"),
            Reload::Killed(store) => write!(f, ", killed and reopened from {store}"),
        }
    }
}

/// Why a case cannot be played over HTTP, if so: because it says so, because it needs the paused
/// clock, or because no wire has a word for it.
pub(crate) fn not_over_http(scenario: &Scenario) -> Option<String> {
    if let Some(reason) = &scenario.not_over_http {
        return Some(reason.clone());
    }
    if scenario.mode == Mode::Executor {
        return Some("the executor alone asks no model".to_owned());
    }
    let config = &scenario.config;
    let mut paused = config.deadline_ms.is_some()
        || config.max_wall_time_ms.is_some()
        || config.grace_ms.is_some()
        || scenario.expect.elapsed_ms_at_most.is_some()
        || scenario.options.deadline_ms.is_some();
    paused |= scenario
        .tools
        .iter()
        .any(|(_, tool)| needs_paused_clock(tool));
    for action in &scenario.actions {
        match action {
            Action::Advance(_) => paused = true,
            Action::Leg(leg) => {
                paused |= leg
                    .triggers
                    .iter()
                    .any(|trigger| trigger.after_ms.is_some());
                for (_, reply) in &leg.replies {
                    if reply.parts.iter().any(has_no_word_on_the_wire)
                        || reply.message_id.is_some()
                        || !reply.counters.is_empty()
                        || matches!(reply.breaks, Some(Break::Cut))
                    {
                        return Some("a reply holds what no wire has a word for".to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    paused.then(|| "it needs the paused clock".to_owned())
}

/// Why a case cannot be played over this wire, while it can over others.
pub(crate) fn not_over(scenario: &Scenario, wire: EndpointWire) -> Option<&'static str> {
    let refuses = |part: &ReplyPart| matches!(part, ReplyPart::Refusal(_));
    let mut replies = scenario.actions.iter().flat_map(|action| match action {
        Action::Leg(leg) => leg.replies.iter().map(|(_, reply)| reply).collect(),
        Action::Rule(reply) => vec![reply],
        _ => Vec::new(),
    });
    let has_refusal = replies.any(|reply| reply.parts.iter().any(refuses));
    (wire == EndpointWire::Messages && has_refusal)
        .then_some("a refusal is a stop reason there, and its words are text")
}

fn needs_paused_clock(tool: &Tool) -> bool {
    let sleeps = |does: &Does| match &does.sleeps_ms {
        None | Some(Amount::Fixed(0)) => false,
        Some(_) => true,
    };
    tool.deadline_ms.is_some()
        || tool
            .first
            .iter()
            .chain(&tool.does)
            .any(|does| sleeps(&does.value))
}

fn has_no_word_on_the_wire(part: &ReplyPart) -> bool {
    matches!(
        part,
        ReplyPart::AttemptReset(_) | ReplyPart::IncompleteCall(_) | ReplyPart::OpenCall(_)
    )
}
