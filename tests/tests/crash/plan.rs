//! The run that is killed, moment by moment: from it follow where a process can be killed, and which calls are
//! in flight there.

use std::collections::BTreeSet;

/// A moment of the run. Each has two boundaries: one before it, one behind it.
enum Moment {
    /// A write of the store, by the step of its first entry or its name.
    Write(&'static str),
    /// A write that holds the starts of these calls, before their bodies are entered.
    Starts(&'static str, &'static [&'static str]),
    /// A write that holds the outcomes of these calls.
    Settles(&'static str, &'static [&'static str]),
    /// The body of this tool.
    Body(&'static str),
    /// A write that holds the outcome of this call, while these bodies run.
    Beside(&'static str, &'static str, &'static [&'static str]),
}

use Moment::{Beside, Body, Settles, Starts, Write};

/// `agent` says what the model asks for. A step that changes this run changes this table: say why there.
const PLAN: &[Moment] = &[
    // The first leg looks whether there is such a run, and keeps the question.
    Write("claim"),
    Write("begin"),
    // The first reply asks for three calls, of which none waits: they are started together, in one write
    // with reply and plan.
    Starts("round/0/model", &["c1", "c2", "c3"]),
    // Each outcome is kept by the task of its body, when it is there. What comes while a write is made goes
    // into the next one together.
    Body("pay"),
    Beside("round/0/batch", "c1", &["look", "pay"]),
    Settles("round/0/batch", &["c2", "c3"]),
    // Then the batch as a whole.
    Write("round/0/batch"),
    // Of the second reply one call waits for a person, the other is an agent, whose tool is entered: a run
    // with a journal of its own.
    Starts("round/1/model", &["c5"]),
    Write("begin"),
    Write("round/0/model"),
    Body("probe"),
    Write("round/0/batch"),
    Write("round/0/batch"),
    Write("round/1/model"),
    Settles("round/1/batch", &["c5"]),
    // The leg ends with what waits, in one write, and lets the run go.
    Write("round/1/batch"),
    Write("release"),
    // A person says yes; a worker takes the run up. The answer is used up with its first write.
    Write("answer"),
    Write("claim"),
    Write("begin"),
    Starts("round/1/batch", &["c4"]),
    Body("transfer"),
    Settles("round/1/batch", &["c4"]),
    Write("round/1/batch"),
    // The third reply asks for one call, the fourth is the answer: it is kept with the end of the run.
    Starts("round/2/model", &["c6"]),
    Body("pay"),
    Settles("round/2/batch", &["c6"]),
    Write("round/2/batch"),
    Write("round/3/model"),
    Write("release"),
];

/// A place where a process can be killed: what the child says there, and what has been kept by then.
struct Edge {
    says: String,
    started: &'static [&'static str],
    settled: &'static [&'static str],
}

fn edges() -> Vec<Edge> {
    let edge = |says: String| Edge {
        says,
        started: &[],
        settled: &[],
    };
    let before = |name: &str| edge(format!("boundary before {name}"));
    let behind = |name: &str| edge(format!("boundary behind {name}"));
    let body =
        |tool: &&str| ["entered", "leaves"].map(|side| edge(format!("boundary {side} {tool}")));
    let both = |moment: &'static Moment| match moment {
        Write(name) => vec![before(name), behind(name)],
        Starts(name, calls) => {
            let started = calls;
            vec![
                before(name),
                Edge {
                    started,
                    ..behind(name)
                },
            ]
        }
        Settles(name, calls) => {
            let settled = calls;
            vec![
                before(name),
                Edge {
                    settled,
                    ..behind(name)
                },
            ]
        }
        Body(tool) => body(tool).into(),
        Beside(name, call, tools) => {
            let mut edges = vec![before(name)];
            edges.extend(tools.iter().flat_map(body));
            let settled = std::slice::from_ref(call);
            edges.push(Edge {
                settled,
                ..behind(name)
            });
            edges
        }
    };
    PLAN.iter().flat_map(both).collect()
}

/// What a child says, at each place where it can be killed.
pub(crate) fn boundaries() -> Vec<String> {
    edges().into_iter().map(|edge| edge.says).collect()
}

/// The calls that are recorded as started and may not be as settled when the process is killed at this
/// boundary: of these alone nobody may know whether they took effect.
pub(crate) fn in_flight_at(boundary: usize) -> BTreeSet<&'static str> {
    let mut calls = BTreeSet::new();
    for edge in edges().into_iter().take(boundary + 1) {
        calls.extend(edge.started);
        for call in edge.settled {
            calls.remove(call);
        }
    }
    calls
}
