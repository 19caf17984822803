//! Cases 16 to 18, 22 and 25 of tool execution: the executor alone, interrupted and resumed.

#[path = "executor_pausing/around.rs"]
mod around;
#[path = "executor_pausing/bench.rs"]
mod bench;

use raf_core::{
    Content, ErrorKind, PausedRun, RefusalReason, RunId, ToolApprovalResponse, ToolOutcome,
    ToolResult, WaitsFor,
};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::ExecuteOptions;
use serde_json::{Value, json};

use crate::bench::{Bench, Form, WAYS, interrupting, point, resume};

/// i and j interrupt, d returns text, s a stream of two pieces.
pub(crate) fn four() -> Bench {
    let pieces = [Content::text("a"), Content::text("b")];
    Bench::new([
        interrupting("i"),
        interrupting("j"),
        ScriptedTool::returning("d", "D"),
        ScriptedTool::new("s").always(Behaviour::pieces(pieces)),
    ])
}

pub(crate) const FOUR: [(&str, &str); 4] = [("1", "i"), ("2", "j"), ("3", "d"), ("4", "s")];

#[tokio::test(start_paused = true)]
async fn te16_an_interrupt_keeps_completed_work() {
    for form in [Form::Whole, Form::Stream] {
        let bench = four();
        let run = RunId::random();
        let options = ExecuteOptions::new().with_run(run.clone(), 0);
        let paused = bench.execute_with(form, &FOUR, options).await;
        // The streams are concatenated.
        assert_eq!(paused.lines(), ["R(3, ok: 'D')", "R(4, ok: 'ab')"]);
        let labels: Vec<_> = paused
            .end
            .pending
            .iter()
            .map(|call| call.call.id())
            .collect();
        assert_eq!(labels, ["1", "2"]);
        let points: Vec<_> = paused.end.pending.iter().map(point).collect();
        // The place, then which question was asked there.
        let place = |address: &str| address.rsplit_once('/').map(|(place, _)| place.to_owned());
        assert_eq!(place(&points[0].1), Some(format!("{run}/0/0/i")));
        assert_eq!(place(&points[1].1), Some(format!("{run}/0/1/j")));
        assert_eq!(points[0].2, json!("i asks"));
        assert_eq!(points[1].2, json!("j asks"));
        assert_ne!(points[0].0, points[1].0);
        // One value holds the whole batch; the tools' own state is not shown to the outside.
        let kept = paused.paused(true);
        assert_eq!(*kept.run_id(), run);
        let shown = serde_json::to_string(&paused.end.pending).unwrap();
        assert!(!shown.contains(r#""of""#), "{shown}");
        assert_eq!(bench.entries(), [1, 1, 1, 1]);
    }
}

#[tokio::test(start_paused = true)]
async fn te17_a_resume_reruns_only_what_is_unfinished() {
    for (first, second, reload) in WAYS {
        let bench = four();
        let paused = bench.execute(first, &FOUR).await;
        let ids: Vec<_> = paused
            .end
            .pending
            .iter()
            .map(|call| point(call).0)
            .collect();
        let answers = [resume(&ids[1], json!(2)), resume(&ids[0], json!(1))];
        let done = bench
            .resume(second, paused.paused(reload), &answers)
            .await
            .unwrap();
        assert!(done.end.paused.is_none() && done.end.pending.is_empty());
        assert_eq!(
            done.lines(),
            [
                "R(1, ok: '1')",
                "R(2, ok: '2')",
                "R(3, ok: 'D')",
                "R(4, ok: 'ab')"
            ]
        );
        assert_eq!(bench.entries(), [2, 2, 1, 1]);
        // What is finished is not emitted again.
        for position in [2, 3] {
            assert!(done.said_about(position).is_empty());
        }
        if matches!(second, Form::Stream) {
            assert_eq!(done.said_about(0), ["start 0/0", "end 0/0"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn te18_a_targeted_resume_leaves_the_others_pending() {
    for (first, second, reload) in WAYS {
        for by_address in [false, true] {
            let bench = Bench::new([
                ScriptedTool::returning("d", "D"),
                interrupting("x"),
                interrupting("y"),
            ]);
            let calls = [("0", "d"), ("1", "x"), ("2", "y")];
            let paused = bench.execute(first, &calls).await;
            let (x, y) = (point(&paused.end.pending[0]), point(&paused.end.pending[1]));
            let name = |point: &(String, String, Value)| {
                if by_address {
                    point.1.clone()
                } else {
                    point.0.clone()
                }
            };
            let answers = [resume(&name(&x), json!("DATA"))];
            let still = bench
                .resume(second, paused.paused(reload), &answers)
                .await
                .unwrap();
            let log = bench.logs[1].calls();
            let seen = log[1].resumption.clone().unwrap();
            assert_eq!((seen.state, seen.data), (json!({"of": "x"}), json!("DATA")));
            assert_eq!(log[0].resumption, None);
            assert_eq!((log[0].attempt, log[1].attempt), (1, 2));
            assert_eq!(log[0].idempotency_key, log[1].idempotency_key);
            assert_eq!(log[0].arguments, log[1].arguments);
            // y is pending as before, and was not run.
            assert_eq!(still.end.pending.len(), 1);
            assert_eq!(point(&still.end.pending[0]), y);
            assert_eq!(bench.entries(), [1, 2, 1]);
            assert!(still.said_about(2).is_empty() && still.said_about(0).is_empty());

            // Resumed without data.
            let answers = [resume(&name(&y), Value::Null)];
            let done = bench
                .resume(first, still.paused(reload), &answers)
                .await
                .unwrap();
            assert_eq!(bench.entries(), [1, 2, 2]);
            let seen = bench.logs[2].calls()[1].resumption.clone().unwrap();
            assert_eq!((seen.state, seen.data), (json!({"of": "y"}), Value::Null));
            let texts: Vec<_> = done.end.results.iter().map(ToolResult::text).collect();
            assert_eq!(texts[0], "D");
            assert!(texts[1].contains("DATA"), "{texts:?}");
            assert_eq!(done.end.results.len(), 3);
            assert!(
                done.end
                    .results
                    .iter()
                    .all(|result| result.outcome().is_ok())
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn te22_equal_and_empty_call_ids_are_told_apart() {
    for (first, second, reload) in WAYS {
        for id in ["", "same"] {
            let b = ScriptedTool::new("b").always(Behaviour::from_fn(|context, _| {
                match context.resumption() {
                    Some(_) => Behaviour::text("B"),
                    None => Behaviour::interrupt(json!("?"), json!(null)),
                }
            }));
            let bench = Bench::new([ScriptedTool::returning("a", "A"), b]);
            let paused = bench.execute(first, &[(id, "a"), (id, "b")]).await;
            assert_eq!(paused.end.pending.len(), 1);
            assert_eq!(paused.end.pending[0].occurrence.position, 1);
            let request = point(&paused.end.pending[0]).0;
            let answers = [resume(&request, json!("go"))];
            let done = bench
                .resume(second, paused.paused(reload), &answers)
                .await
                .unwrap();
            let texts: Vec<_> = done.end.results.iter().map(ToolResult::text).collect();
            assert_eq!(texts, ["A", "B"]);
            assert_eq!(bench.entries(), [1, 2]);
        }
    }
}

/// A: state with values that nobody registered is kept as it is, and unknown fields do no harm.
#[tokio::test(start_paused = true)]
async fn te25_state_of_any_form_survives() {
    let state = json!({
        "deep": [{"of": null}, 1e300, -0.5, "ä\u{0}\u{1F980}"],
        "large": u64::MAX,
        "is": "settled",
        "format": 99,
    });
    let kept = state.clone();
    let tool = ScriptedTool::new("i").always(Behaviour::interrupt(json!(null), kept));
    let bench = Bench::new([tool]);
    let paused = bench.execute(Form::Whole, &[("1", "i")]).await;
    let mut json = serde_json::to_value(paused.end.paused.as_ref().unwrap()).unwrap();
    json["from_a_later_release"] = json!({"x": [1]});
    json["calls"][0]["another"] = json!(true);
    let read: PausedRun = serde_json::from_value(json).unwrap();
    let answers = [resume(&point(&read.pending()[0]).0, json!(1))];
    bench.resume(Form::Whole, read, &answers).await.unwrap();
    let seen = bench.logs[0].calls()[1].resumption.clone().unwrap();
    assert_eq!(seen.state, state);
}

/// B: unknown and stale ids are typed errors, and nothing runs.
#[tokio::test(start_paused = true)]
async fn te25_unknown_and_stale_ids_are_typed_errors() {
    for (first, second, reload) in WAYS {
        let bench = Bench::new([interrupting("x"), interrupting("y")]);
        let paused = bench.execute(first, &[("1", "x"), ("2", "y")]).await;
        let x = point(&paused.end.pending[0]).0;
        for unknown in ["", "1", "no such id", "run/0/0/x"] {
            let answers = [resume(unknown, json!(1))];
            let error = bench
                .resume(second, paused.paused(reload), &answers)
                .await
                .err()
                .unwrap();
            assert_eq!(error.kind(), ErrorKind::ApprovalRefused);
            assert_eq!(error.code(), Some("unknown_request"));
        }
        assert_eq!(bench.entries(), [1, 1]);

        let answers = [resume(&x, json!(1))];
        let still = bench
            .resume(second, paused.paused(reload), &answers)
            .await
            .unwrap();
        let error = bench
            .resume(first, still.paused(reload), &answers)
            .await
            .err()
            .unwrap();
        assert_eq!(error.code(), Some("already_settled"));
        // Beside a right answer it is told of, and does no harm.
        let y = point(&still.end.pending[0]).0;
        let answers = [answers[0].clone(), resume(&y, json!(2))];
        let done = bench
            .resume(first, still.paused(reload), &answers)
            .await
            .unwrap();
        assert_eq!(done.end.refusals, [(x, RefusalReason::AlreadySettled)]);
        assert_eq!(bench.entries(), [2, 2]);
        assert_eq!(done.lines(), ["R(1, ok: '1')", "R(2, ok: '2')"]);
    }
}

/// C: after success nothing is left, and a new input under the same id starts fresh.
#[tokio::test(start_paused = true)]
async fn te25_after_success_nothing_is_left_and_the_same_id_starts_fresh() {
    for (first, second, reload) in WAYS {
        let bench = Bench::new([interrupting("x")]);
        let run = RunId::from("one");
        let options = || ExecuteOptions::new().with_run(run.clone(), 0);
        let paused = bench.execute_with(first, &[("1", "x")], options()).await;
        let old = point(&paused.end.pending[0]).0;
        let answers = [resume(&old, json!(1))];
        let done = bench
            .resume(second, paused.paused(reload), &answers)
            .await
            .unwrap();
        assert!(done.end.paused.is_none());

        let fresh = bench.execute_with(first, &[("1", "x")], options()).await;
        assert_eq!(bench.logs[0].calls()[2].resumption, None);
        assert_eq!(bench.logs[0].calls()[2].attempt, 1);
        assert_ne!(point(&fresh.end.pending[0]).0, old);
        // The old answer is none to the new question.
        let error = bench
            .resume(second, fresh.paused(reload), &answers)
            .await
            .err()
            .unwrap();
        assert_eq!(error.code(), Some("unknown_request"));
    }
}

/// E: without a store the information is there all the same (D, the change of form, is in WAYS).
#[tokio::test(start_paused = true)]
async fn te25_the_information_needs_no_store() {
    for form in [Form::Whole, Form::Stream] {
        let bench = Bench::new([interrupting("x")]);
        let paused = bench.execute(form, &[("1", "x")]).await;
        assert_eq!(point(&paused.end.pending[0]).2, json!("x asks"));
    }
}

/// Interrupt, ordinary error and empty stream in one batch lose nothing; the failed one is settled.
#[tokio::test(start_paused = true)]
async fn te16_an_interrupt_beside_an_error_and_an_empty_stream_loses_nothing() {
    for (first, second, reload) in WAYS {
        let bench = Bench::new([
            interrupting("i"),
            ScriptedTool::new("bad").always(Behaviour::tell_model("broken")),
            ScriptedTool::new("empty").always(Behaviour::pieces([])),
            ScriptedTool::returning("gated", "G").gated(),
        ]);
        let calls = [("1", "i"), ("2", "bad"), ("3", "empty"), ("4", "gated")];
        let paused = bench.execute(first, &calls).await;
        assert_eq!(paused.end.pending.len(), 2);
        let WaitsFor::Approval(request) = &paused.end.pending[1].waits_for else {
            panic!("{:?}", paused.end.pending);
        };
        let answers = [
            ToolApprovalResponse::approve(&request.request_id),
            resume(&point(&paused.end.pending[0]).0, json!("this")),
        ];
        let done = bench
            .resume(second, paused.paused(reload), &answers)
            .await
            .unwrap();
        assert_eq!(bench.entries(), [2, 1, 1, 1]);
        let outcomes: Vec<_> = done.end.results.iter().map(ToolResult::outcome).collect();
        let failed = ToolOutcome::Error(raf_core::ToolErrorClass::Failed);
        assert_eq!(
            outcomes,
            [ToolOutcome::Ok, failed, ToolOutcome::Ok, ToolOutcome::Ok]
        );
        assert!(!done.end.results[2].text().is_empty());
    }
}
