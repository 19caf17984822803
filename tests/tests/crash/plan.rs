//! The run that is killed, moment by moment: from it follow where a process can be killed, and which calls are
//! in flight there.

use std::collections::BTreeSet;

/// A moment of the run. Each has two boundaries: one before it, one behind it.
enum Moment {
    /// A write of the store, by its step or its name.
    Write(&'static str),
    /// A step that records that these calls are started, before their bodies are entered.
    Starts(&'static str, &'static [&'static str]),
    /// A step that records the outcome of this call.
    Settles(&'static str, &'static str),
    /// The body of this tool.
    Body(&'static str),
}

use Moment::{Body, Settles, Starts, Write};

/// `agent` says what the model asks for. A step that changes this run changes this table: say why there.
const PLAN: &[Moment] = &[
    // The first leg looks whether there is such a run, and keeps the question.
    Write("claim"),
    Write("leg/0/begin"),
    // The first reply asks for three calls, of which none waits: they are started together.
    Starts("round/0/plan", &["c1", "c2", "c3"]),
    Body("pay"),
    Body("look"),
    Body("pay"),
    // Each outcome is kept when it is there, then the batch as a whole.
    Settles("round/0/batch", "c1"),
    Settles("round/0/batch", "c2"),
    Settles("round/0/batch", "c3"),
    Write("round/0/batch"),
    // Of the second reply one call waits for a person, the other is an agent, whose tool is entered.
    Starts("round/1/plan", &["c5"]),
    Body("probe"),
    Settles("round/1/batch", "c5"),
    // The leg ends with what waits, in one write, and lets the run go.
    Write("round/1/batch"),
    Write("release"),
    // A person says yes; a worker takes the run up.
    Write("answer"),
    Write("claim"),
    // The answer is used up with this write, and the call counts as started from here on: earlier than its
    // body needs, for that is entered behind the next write.
    Starts("leg/1/begin", &["c4"]),
    Starts("round/1/plan", &["c4"]),
    Body("transfer"),
    Settles("round/1/batch", "c4"),
    Write("round/1/batch"),
    // The third reply asks for one call, the fourth is the answer.
    Starts("round/2/plan", &["c6"]),
    Body("pay"),
    Settles("round/2/batch", "c6"),
    Write("round/2/batch"),
    Write("leg/1/end"),
    Write("release"),
];

/// What a child says, at each place where it can be killed.
pub(crate) fn boundaries() -> Vec<String> {
    let both = |moment: &Moment| match moment {
        Write(name) | Starts(name, _) | Settles(name, _) => {
            ["before", "behind"].map(|side| format!("boundary {side} {name}"))
        }
        Body(tool) => ["entered", "leaves"].map(|side| format!("boundary {side} {tool}")),
    };
    PLAN.iter().flat_map(both).collect()
}

/// The calls that are recorded as started and not as settled when the process is killed at this boundary: of
/// these alone nobody may know whether they took effect.
pub(crate) fn in_flight_at(boundary: usize) -> BTreeSet<&'static str> {
    let mut calls = BTreeSet::new();
    // What is behind its write has been made.
    let made = boundary.div_ceil(2);
    for moment in &PLAN[..made] {
        match moment {
            Starts(_, started) => calls.extend(*started),
            Settles(_, call) => {
                calls.remove(call);
            }
            Write(_) | Body(_) => {}
        }
    }
    calls
}
