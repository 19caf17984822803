//! Kills the child at each boundary, has another process finish the run, and judges what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};

use raf_core::{
    ChatMessage, JournalKey, JournalKind, Occurrence, RunId, ToolOutcome, ToolResult, normalise,
    validate_history,
};
use raf_testing::invariants::{assert_holds, check_transcript};

use crate::agent::ANSWER;
use crate::child::{AHEAD, LEASE, Task};
use crate::plan;
use raf_tests::backend::Backend;

/// What the plan of the run comes to: 32 moments, of which each has two sides.
const KILL_POINTS: usize = 64;

/// The tools that may not be entered twice.
const ONCE: [&str; 3] = ["pay", "transfer", "probe"];

pub(crate) fn at_each_boundary(backend: &Backend) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let whole = RunId::from("whole");
    let boundaries = play(backend, &whole, None);
    let nowhere = Kill {
        place: "nowhere".to_owned(),
        recorded: BTreeMap::new(),
        in_flight: BTreeSet::new(),
    };
    runtime.block_on(judge(backend, &whole, &nowhere));
    assert_eq!(boundaries, plan::boundaries(), "the run is not as planned");
    assert_eq!(boundaries.len(), KILL_POINTS);
    for (point, what) in boundaries.iter().enumerate() {
        let run_id = RunId::from(format!("killed-{point}").as_str());
        let place = format!("point {point}, {what}");
        let seen = play(backend, &run_id, Some(point));
        assert_eq!(seen, boundaries[..=point], "the run is the same each time");
        let kill = Kill {
            recorded: runtime.block_on(recorded(backend, &run_id)),
            in_flight: plan::in_flight_at(point),
            place,
        };
        let finished = Task::Finish(backend.clone(), run_id.clone())
            .command()
            .output()
            .expect("a child");
        assert!(
            finished.status.success(),
            "{}: {}",
            kill.place,
            String::from_utf8_lossy(&finished.stderr)
        );
        runtime.block_on(judge(backend, &run_id, &kill));
    }
    runtime.block_on(backend.clean());
}

/// Plays a run in a child until a boundary, where it is killed from outside; says which it saw.
fn play(backend: &Backend, run_id: &RunId, kill_at: Option<usize>) -> Vec<String> {
    // Effects are judged run by run.
    let _ = std::fs::remove_file(backend.folder.join("effects"));
    let task = Task::Play(backend.clone(), run_id.clone());
    let mut child = task.command().spawn().expect("a child");
    let mut stdin = child.stdin.take().expect("its input");
    let stdout = BufReader::new(child.stdout.take().expect("its output"));
    let mut boundaries = Vec::new();
    for line in stdout.lines() {
        let line = line.expect("a line");
        boundaries.push(line);
        if kill_at == Some(boundaries.len() - 1) {
            child.kill().expect("SIGKILL");
            break;
        }
        stdin.write_all(b"\n").expect("the child waits");
    }
    let status = child.wait().expect("its end");
    assert_eq!(status.success(), kill_at.is_none(), "{boundaries:#?}");
    boundaries
}

/// The results that the store has of a run.
async fn recorded(backend: &Backend, run_id: &RunId) -> BTreeMap<Occurrence, ToolResult> {
    let store = backend.open(AHEAD, LEASE).await;
    let key = JournalKey::root(run_id.clone());
    let entries = store.journal(&key, 0).await.expect("the journal");
    let mut results = BTreeMap::new();
    for entry in entries {
        let found: Vec<ToolResult> = if entry.kind == JournalKind::Settled {
            let result = entry.value["value"]["result"].clone();
            vec![serde_json::from_value(result).expect("a result")]
        } else {
            let messages = messages(&entry.value, "messages");
            let found = messages.iter().flat_map(ChatMessage::tool_results);
            found.cloned().collect()
        };
        for result in found {
            results.extend(result.occurrence().map(|place| (place, result.clone())));
        }
    }
    results
}

fn messages(value: &serde_json::Value, member: &str) -> Vec<ChatMessage> {
    let found = value.get(member).cloned().unwrap_or_default();
    serde_json::from_value(found).unwrap_or_default()
}

/// The transcript of a run, as its journal has it.
async fn transcript(backend: &Backend, run_id: &RunId) -> Vec<ChatMessage> {
    let store = backend.open(AHEAD, LEASE).await;
    let record = store.load(run_id).await.expect("the store");
    assert!(record.expect("the run").closed);
    let key = JournalKey::root(run_id.clone());
    let mut transcript = Vec::new();
    for entry in store.journal(&key, 0).await.expect("the journal") {
        if entry.kind == JournalKind::Step {
            transcript.extend(messages(&entry.value, "input"));
            transcript.extend(messages(&entry.value, "messages"));
        }
    }
    // Results of later legs stand behind those of earlier ones: what is sent has them in call order.
    normalise(&transcript)
}

/// Where a process died.
struct Kill {
    place: String,
    /// The results that the store had by then.
    recorded: BTreeMap<Occurrence, ToolResult>,
    /// The calls that were in flight.
    in_flight: BTreeSet<&'static str>,
}

/// What must hold of a finished run, wherever its first process died.
async fn judge(backend: &Backend, run_id: &RunId, kill: &Kill) {
    let place = &kill.place;
    let transcript = transcript(backend, run_id).await;
    validate_history(&transcript).unwrap_or_else(|fault| panic!("{place}: {fault:?}"));
    assert_holds(check_transcript(&transcript, &[]));
    assert_eq!(
        transcript.last().expect("an answer").text(),
        ANSWER,
        "{place}"
    );
    let effects = std::fs::read_to_string(backend.folder.join("effects")).expect("effects");
    let mut entered = BTreeMap::<(&str, &str), Vec<&str>>::new();
    let mut asked = BTreeSet::new();
    for line in effects.lines() {
        let mut words = line.split(' ');
        let (tool, n) = (words.next().expect("a tool"), words.next().expect("a call"));
        if tool == "asked" {
            asked.insert(n);
        } else {
            let keys = entered.entry((tool, n)).or_default();
            keys.extend(words.next());
        }
    }
    assert_eq!(asked.len(), 1, "{place}: the approval is asked once");
    for ((tool, n), keys) in &entered {
        let same: BTreeSet<_> = keys.iter().collect();
        assert_eq!(same.len(), 1, "{place}: {tool} {n} has one key");
        if ONCE.contains(tool) {
            assert_eq!(keys.len(), 1, "{place}: {tool} {n} is entered once");
        }
    }
    let results: BTreeMap<Occurrence, ToolResult> = transcript
        .iter()
        .flat_map(ChatMessage::tool_results)
        .filter_map(|result| Some((result.occurrence()?, result.clone())))
        .collect();
    assert_eq!(results.len(), 6, "{place}: each call has its result");
    for (occurrence, result) in &kill.recorded {
        let kept = results.get(occurrence).expect("a recorded result is there");
        assert_eq!(kept.text(), result.text(), "{place}: {occurrence:?}");
    }
    let calls = transcript.iter().flat_map(ChatMessage::tool_calls);
    for (call, result) in calls.zip(results.values()) {
        let arguments: serde_json::Value =
            serde_json::from_str(call.arguments()).expect("arguments");
        let n = arguments["n"].to_string();
        let entries = entered.get(&(call.name(), n.as_str())).map_or(0, Vec::len);
        match result.outcome() {
            ToolOutcome::Ok => assert!(
                entries >= 1 || call.name() == "expert",
                "{place}: {} is ok and was not entered",
                call.name()
            ),
            ToolOutcome::Unknown => {
                assert_ne!(call.name(), "look", "{place}: it is idempotent");
                assert_ne!(call.name(), "expert", "{place}: it is a run of its own");
                assert!(
                    kill.in_flight.contains(call.id()),
                    "{place}: {} was not in flight",
                    call.id()
                );
            }
            other => panic!("{place}: {} ended as {other:?}", call.name()),
        }
    }
}
