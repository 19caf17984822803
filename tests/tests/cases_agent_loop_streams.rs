//! Public bug reports as scripts: usage over rounds, streams that die (C18, C19).

use raf_core::{
    AgentResponseUpdate, Cancellation, ChatClientRunOptions, Error, ErrorKind, FinishReason,
    MessageStatus, SkipReason, ToolOutcome, Usage,
};
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tests::in_both_forms;
use raf_tests::leg::assert_lines;

const TRUNCATED: ToolOutcome = ToolOutcome::skipped(SkipReason::Truncated);

#[tokio::test(start_paused = true)]
async fn c18_usage_over_several_rounds() {
    in_both_forms(async |case| {
        case.tool(ScriptedTool::returning("t", "x"));
        case.tool(ScriptedTool::returning("sub", "x"));
        case.replies([
            Reply::calls([("c1", "t", "{}")]).usage(100, 10),
            // Streamed chunks repeat what the reply has used so far.
            Reply::new()
                .usage(150, 3)
                .usage(150, 9)
                .call("c2", "sub", "{}")
                .usage(150, 20),
            Reply::text("do")
                .usage(180, 12)
                .then_text("ne")
                .usage(180, 30),
        ]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        assert_eq!(leg.usage(), Usage::new(430, 60));
        assert_eq!(leg.run_usage(), Usage::new(430, 60));
        let rounds: Vec<(u32, Usage, bool)> = leg
            .rounds()
            .into_iter()
            .map(|round| (round.round, round.usage, round.nested.is_some()))
            .collect();
        assert_eq!(
            rounds,
            [
                (0, Usage::new(100, 10), false),
                (1, Usage::new(150, 20), false),
                (2, Usage::new(180, 30), false),
            ]
        );
    })
    .await;
}

/// Cancelled in round 2, while its reply streams and while its tool runs.
#[tokio::test(start_paused = true)]
async fn c18_after_a_cancel_the_usage_is_what_was_reported_so_far() {
    let first = || Reply::calls([("c1", "t", "{}")]).usage(100, 10);
    let streaming = Reply::text("let").usage(150, 7).hang();
    let running = Reply::calls([("c2", "sub", "{}")]).usage(150, 20);
    for (second, expected) in [
        (streaming, Usage::new(250, 17)),
        (running, Usage::new(250, 30)),
    ] {
        in_both_forms(async |case| {
            case.tool(ScriptedTool::returning("t", "x"));
            case.tool(ScriptedTool::new("sub").always(Behaviour::until_cancelled()));
            case.replies([first(), second.clone()]);
            let cancellation = Cancellation::new();
            let options = ChatClientRunOptions::new().with_cancellation(cancellation.clone());
            case.on_item(move |_, item| {
                let reported = matches!(item, Ok(AgentResponseUpdate::Usage { usage })
                    if usage.output_tokens == Some(7));
                let started = matches!(item, Ok(AgentResponseUpdate::ToolStarted { call, .. })
                    if call.id == "c2");
                if reported || started {
                    cancellation.cancel();
                }
            });
            let leg = case.say_with("go", options).await;
            assert_eq!(leg.error_kind(), ErrorKind::Cancelled);
            assert_eq!(leg.usage(), expected);
            assert_eq!(leg.rounds().len(), 2);
        })
        .await;
    }
}

/// Two ways in which a stream dies: the provider says so, or it just ends.
#[tokio::test(start_paused = true)]
async fn c19_stream_dies_in_the_middle_without_a_retry() {
    let lost = || Error::new(ErrorKind::Transport, "connection lost");
    let begun = || Reply::text("Let me ").open_call("c1", "run", r#"{"code":"pri"#);
    for (dying, kind) in [
        (begun().error(lost()), ErrorKind::Transport),
        (begun().cut(), ErrorKind::TruncatedStream),
    ] {
        in_both_forms(async |case| {
            let run = case.tool(ScriptedTool::returning("run", "out"));
            case.replies([dying.clone(), Reply::text("1")]);
            let first = case.say("compute").await;
            assert_eq!(first.error_kind(), kind);
            assert!(first.error_kind().is_model());
            assert_lines(&first.lines(), &["A:Let me "]);
            assert_eq!(first.messages()[0].status(), MessageStatus::Incomplete);
            assert_eq!((case.request_count(), run.entries()), (1, 0));

            let second = case.say("go on").await;
            assert_eq!(
                (second.reason(), &*second.text()),
                (&FinishReason::Stop, "1")
            );
            assert_lines(
                &case.request(2).lines(),
                &["U:compute", "A:Let me ", "U:go on"],
            );
            assert_eq!(run.entries(), 0);
        })
        .await;
    }
}

/// A call that was whole when the stream died is kept, and skipped as truncated.
#[tokio::test(start_paused = true)]
async fn c19_a_whole_call_of_a_dead_stream_is_not_run() {
    in_both_forms(async |case| {
        let run = case.tool(ScriptedTool::returning("run", "out"));
        let lost = Error::new(ErrorKind::Transport, "connection lost");
        let dying = Reply::text("Let me ").call("c1", "run", "{}");
        case.replies([dying.error(lost), Reply::text("1")]);
        let first = case.say("compute").await;
        assert_eq!(first.error_kind(), ErrorKind::Transport);
        assert_eq!(first.outcome("c1"), TRUNCATED);
        assert_eq!(run.entries(), 0);
        let second = case.say("go on").await;
        assert_eq!(second.reason(), &FinishReason::Stop);
        assert_lines(
            &case.request(2).lines(),
            &[
                "U:compute",
                "A:Let me  [c1]",
                "R(c1, skipped truncated: '*",
                "U:go on",
            ],
        );
    })
    .await;
}

/// The reset event that a retry layer will send: what came before it is forgotten.
#[tokio::test(start_paused = true)]
async fn c19_an_attempt_reset_is_handled() {
    in_both_forms(async |case| {
        let run = case.tool(ScriptedTool::returning("run", "out"));
        case.replies([
            Reply::text("Let me ")
                .open_call("c1", "run", r#"{"code":"pri"#)
                .attempt_reset("connection lost")
                .then_text("Let me compute.")
                .call("c9", "run", r#"{"code":"print(1)"}"#),
            Reply::text("1"),
        ]);
        let leg = case.say("compute").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        leg.assert_order(&["text 'Let me '", "attempt_reset", "text 'Let me compute.'"]);
        assert_lines(
            &case.request(2).lines(),
            &["U:compute", "A:Let me compute. [c9]", "R(c9, ok: 'out')"],
        );
        let call = leg.messages()[0].tool_calls().next().unwrap().clone();
        assert_eq!(call.arguments(), r#"{"code":"print(1)"}"#);
        assert_eq!(run.call_ids(), ["c9"]);
    })
    .await;
}
