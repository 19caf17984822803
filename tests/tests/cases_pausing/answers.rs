//! Answers: settled once (E2), refused for each reason (E3), in any order (E4), no (E5), edited (E6).

use futures::StreamExt;
use raf_core::{
    ChatClientRunOptions, ChatMessage, ErrorKind, FinishReason, IChatClient, ToolApprovalResponse,
    ToolOutcome, ToolResult, collect,
};
use raf_testing::{Behaviour, Latch, Reply, ScriptedTool, poll_n};
use raf_tests::Form;
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{Ledger, PausingCase, Reload, in_every_way};
use serde_json::json;

use crate::support::{answer_of_json, assert_completed, assert_paused, assert_refused};

fn approve(id: &str) -> ChatClientRunOptions {
    ChatClientRunOptions::new().with_tool_approval_responses([ToolApprovalResponse::approve(id)])
}

/// The first leg is polled so many times, the second runs to its end, then the first does: however
/// they meet, the body is entered once, one leg completes, the other fails with a typed error.
#[tokio::test(start_paused = true)]
async fn e2_two_concurrent_legs_with_the_same_yes_run_it_once() {
    let mut in_between = 0;
    for polls in 0.. {
        let mut case = PausingCase::new(Form::Stream, Reload::Nothing);
        let latch = Latch::new();
        let body = Behaviour::text("wiped").after_latch(&latch);
        let wipe = case.tool(ScriptedTool::new("wipe").gated().always(body));
        case.replies([Reply::calls([("c1", "wipe", "{}")]), Reply::text("done")]);
        assert_paused(&case.say("wipe").await, &["c1 approval"]);
        let (client, conversation) = (case.client(), case.conversation().clone());

        let options = approve(&case.id("c1"));
        let mut first = client.run(&conversation, options.clone()).await.unwrap();
        let begun =
            tokio::time::timeout(std::time::Duration::from_secs(1), poll_n(&mut first, polls))
                .await;
        // Where it waits for its body, the second one meets it; else that opens the latch.
        let waits = begun.is_err();
        if !waits {
            latch.open();
        }
        let second = client.run(&conversation, options).await.unwrap();
        let second = collect(second).await;
        latch.open();
        let ended = begun.as_ref().is_ok_and(|run| run.ended);
        let first = first.collect::<Vec<_>>().await;
        assert_eq!(wipe.entries(), 1, "after {polls} polls");

        let failed_first = first.iter().find_map(|item| item.as_ref().err());
        let failed = [failed_first, second.as_ref().err()];
        let kinds: Vec<_> = failed
            .into_iter()
            .flatten()
            .map(raf_core::Error::kind)
            .collect();
        assert_eq!(kinds.len(), 1, "after {polls} polls: {kinds:?}");
        assert!(
            matches!(
                kinds[0],
                ErrorKind::BusySession | ErrorKind::ApprovalRefused
            ),
            "after {polls} polls: {kinds:?}"
        );
        in_between += usize::from(kinds[0] == ErrorKind::BusySession);
        assert_eq!(case.model().request_count(), 2);
        if ended || waits {
            break;
        }
    }
    assert!(in_between > 0, "the legs never met");
}

/// Two calls wait: c1 for a yes, c2 for data.
async fn both_kinds(case: &mut PausingCase) {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    });
    let wipe = ScriptedTool::returning("wipe", "wiped").with_parameters(&schema);
    case.tool(wipe.gated());
    let ask = ScriptedTool::new("ask");
    case.tool(ask.always(Behaviour::interrupt(json!("which?"), json!("state"))));
    case.replies([
        Reply::calls([("c1", "wipe", r#"{"n":1}"#), ("c2", "ask", "{}")]),
        Reply::text("done"),
    ]);
    let paused = case.say("go").await;
    assert_paused(&paused, &["c1 approval", "c2 data"]);
    assert_eq!(case.ledger().count(&paused, "interrupted c2"), 1);
}

/// Every answer that does not fit, by name, and the reason why.
fn wrong_answers(case: &PausingCase) -> Vec<(&'static str, ToolApprovalResponse, &'static str)> {
    let (c1, c2) = (case.id("c1"), case.id("c2"));
    vec![
        (
            "nobody asked",
            ToolApprovalResponse::approve("no such request"),
            "unknown_request",
        ),
        (
            "the call's own label",
            ToolApprovalResponse::approve("c1"),
            "unknown_request",
        ),
        (
            "other arguments",
            case.yes("c1").with_arguments(json!({"n": 2})),
            "args_mismatch",
        ),
        (
            "no to other arguments",
            case.no("c1", "no").with_arguments(json!({})),
            "args_mismatch",
        ),
        (
            "data for other arguments",
            ToolApprovalResponse::resume(&c2, json!(1)).with_arguments(json!({"n": 1})),
            "args_mismatch",
        ),
        (
            "data for a yes",
            ToolApprovalResponse::resume(&c1, json!("yes")),
            "wrong_category",
        ),
        ("a yes for data", case.yes("c2"), "wrong_category"),
        (
            "edited arguments for data",
            ToolApprovalResponse::approve_edited(&c2, json!({})),
            "wrong_category",
        ),
        ("a word", answer_of_json(&c1, &json!("yes")), "malformed"),
        ("a truth", answer_of_json(&c1, &json!(true)), "malformed"),
        (
            "an unknown decision",
            answer_of_json(&c1, &json!({"approve_all": {}})),
            "malformed",
        ),
        (
            "a decision and more",
            answer_of_json(&c1, &json!({"deny": {"reason": "r", "but": "yes"}})),
            "malformed",
        ),
        (
            "a word for data",
            answer_of_json(&c2, &json!("ok")),
            "malformed",
        ),
        (
            "edited to no object",
            ToolApprovalResponse::approve_edited(&c1, json!([1])),
            "malformed",
        ),
        (
            "edited against the schema",
            ToolApprovalResponse::approve_edited(&c1, json!({"n": "one"})),
            "malformed",
        ),
        (
            "edited to nothing",
            ToolApprovalResponse::approve_edited(&c1, json!({})),
            "malformed",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn e3_whatever_does_not_fit_is_refused_and_leaves_all_pending() {
    in_every_way(async |case: &mut PausingCase| {
        both_kinds(case).await;
        let entered = case.ledger().entries.len();
        for (name, answer, reason) in wrong_answers(case) {
            let leg = case.answer([answer]).await;
            assert_refused(&leg, reason, &["c1 approval", "c2 data"]);
            let words = case.ledger().words(&leg);
            assert_eq!(words.len(), 2, "{name}: {words:?}");
            assert!(words[0].ends_with(reason), "{name}: {words:?}");
        }
        assert_eq!(case.ledger().entries.len(), entered);
        let data = ToolApprovalResponse::resume(case.id("c2"), json!({"pick": 1}));
        let done = case.answer([case.yes("c1"), data]).await;
        assert_completed(&done);
        assert_lines(
            &case.request_lines(2),
            &[
                "U:go",
                "A:[c1,c2]",
                "R(c1, ok: 'wiped')",
                "R(c2, ok: '{\"pick\":1}')",
            ],
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e3_a_wrong_answer_does_not_stop_a_right_one() {
    in_every_way(async |case: &mut PausingCase| {
        both_kinds(case).await;
        let wrong: Vec<_> = wrong_answers(case);
        let (answers, reasons): (Vec<_>, Vec<_>) = wrong
            .into_iter()
            .map(|(_, answer, reason)| (answer, reason))
            .unzip();
        let mut answers = answers;
        answers.push(case.yes("c1"));
        let still = case.answer(answers).await;
        assert_paused(&still, &["c2 data"]);
        assert_lines(&still.lines(), &["R(c1, ok: 'wiped')"]);
        let words = case.ledger().words(&still);
        let refused: Vec<_> = words
            .iter()
            .filter(|word| word.starts_with("approval_refused"))
            .map(|word| word.rsplit(' ').next().unwrap_or_default())
            .collect();
        let mut reasons = reasons;
        let mut refused = refused;
        reasons.sort_unstable();
        refused.sort_unstable();
        assert_eq!(refused, reasons);
        let data = ToolApprovalResponse::resume(case.id("c2"), json!("this"));
        assert_completed(&case.answer([data]).await);
    })
    .await;
}

/// Refused answers alone make no model request, whatever the history ends in.
#[tokio::test(start_paused = true)]
async fn e3_only_refused_answers_make_no_request_whatever_the_history_ends_in() {
    let wrong = || approve("no such request");
    in_every_way(async |case: &mut PausingCase| {
        case.tool(ScriptedTool::returning("f", "r"));
        let call = raf_core::ToolCall::new("x", "f", "{}");
        let result = ChatMessage::tool(ToolResult::ok("x", "r"));
        for ending in [
            vec![ChatMessage::system("be kind")],
            vec![ChatMessage::assistant("hello")],
            vec![ChatMessage::assistant_calls([call.clone()])],
            vec![ChatMessage::assistant_calls([call.clone()]), result.clone()],
        ] {
            let mut messages = vec![ChatMessage::user("hi")];
            messages.extend(ending);
            let leg = case.go_on_with(messages, wrong()).await;
            assert_refused(&leg, "unknown_request", &[]);
        }
        assert_eq!(case.request_count(), 0);
    })
    .await;
}

/// Every order of one, two, three.
const ORDERS: [[&str; 3]; 6] = [
    ["c1", "c2", "c3"],
    ["c1", "c3", "c2"],
    ["c2", "c1", "c3"],
    ["c2", "c3", "c1"],
    ["c3", "c1", "c2"],
    ["c3", "c2", "c1"],
];

#[tokio::test(start_paused = true)]
async fn e4_answers_in_any_order_one_at_a_time() {
    for order in ORDERS {
        in_every_way(async |case: &mut PausingCase| {
            let f = case.tool(ScriptedTool::new("f").gated().always(Behaviour::echo()));
            case.replies([
                Reply::calls([
                    ("c1", "f", r#"{"n":1}"#),
                    ("c2", "f", r#"{"n":2}"#),
                    ("c3", "f", r#"{"n":3}"#),
                ]),
                Reply::text("done"),
            ]);
            case.say("go").await;
            let mut open = vec!["c1", "c2", "c3"];
            for (answered, label) in (1..).zip(order) {
                let leg = case.answer([case.yes(label)]).await;
                open.retain(|other| *other != label);
                // Acted on at once; the model is asked when the last is settled.
                assert_eq!(f.entries(), answered);
                let wait: Vec<_> = open
                    .iter()
                    .map(|label| format!("{label} approval"))
                    .collect();
                assert_eq!(Ledger::waiting(&leg), wait);
                assert_eq!(case.request_count(), if open.is_empty() { 2 } else { 1 });
            }
            assert_eq!(f.call_ids(), order);
            assert_eq!(case.ledger().asked.len(), 3);
            assert_lines(
                &case.request_lines(2),
                &[
                    "U:go",
                    "A:[c1,c2,c3]",
                    "R(c1, ok: '{\"n\":1}')",
                    "R(c2, ok: '{\"n\":2}')",
                    "R(c3, ok: '{\"n\":3}')",
                ],
            );
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn e5_a_denied_call_is_not_asked_again_within_the_turn() {
    in_every_way(async |case: &mut PausingCase| {
        let f = case.tool(ScriptedTool::returning("f", "r").gated());
        case.replies([
            Reply::calls([("c1", "f", r#"{"a":1,"b":2}"#)]),
            // The same call, and another one.
            Reply::calls([
                ("c2", "f", r#"{"b": 2, "a": 1}"#),
                ("c3", "f", r#"{"a":9}"#),
            ]),
            Reply::calls([("c4", "f", r#"{"a":1,"b":2}"#)]),
            Reply::text("I give up"),
            Reply::calls([("c5", "f", r#"{"a":1,"b":2}"#)]),
            Reply::text("done"),
        ]);
        case.say("go").await;
        let again = case.answer([case.no("c1", "too dear")]).await;
        assert_paused(&again, &["c3 approval"]);
        assert_lines(
            &again.lines(),
            &[
                "R(c1, denied: 'Rejected: too dear')",
                "A:[c2,c3]",
                "R(c2, denied: 'Rejected: *",
            ],
        );
        assert_eq!(case.ledger().times_asked("c2"), 0);

        let gave_up = case.answer([case.yes("c3")]).await;
        assert_completed(&gave_up);
        assert_eq!(gave_up.outcome("c4"), ToolOutcome::Denied);
        assert_eq!(case.ledger().times_asked("c4"), 0);
        assert_eq!(f.call_ids(), ["c3"]);

        // A new turn of the user: it is asked.
        assert_paused(&case.say("try again").await, &["c5 approval"]);
        assert_completed(&case.answer([case.yes("c5")]).await);
        assert_eq!(f.call_ids(), ["c3", "c5"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e6_edited_arguments_run_and_the_result_says_so() {
    in_every_way(async |case: &mut PausingCase| {
        both_kinds(case).await;
        let edited = json!({"n": 7});
        let answer = ToolApprovalResponse::approve_edited(case.id("c1"), edited.clone());
        let still = case.answer([answer]).await;
        assert_paused(&still, &["c2 data"]);
        assert_eq!(still.entries.len(), 1);
        assert_eq!(json!(still.entries[0].arguments), edited);
        let result = still.result("c1");
        assert_eq!(result.outcome(), ToolOutcome::Ok);
        assert_eq!(result.executed_arguments(), Some(&edited));
        assert!(result.text().contains(r#"{"n":7}"#), "{}", result.text());
        // The transcript keeps the model's call.
        let call = case.conversation()[1].tool_calls().next().unwrap().clone();
        assert_eq!(call.arguments(), r#"{"n":1}"#);
        let data = ToolApprovalResponse::resume(case.id("c2"), json!(1));
        assert_completed(&case.answer([data]).await);
        let sent = case.request(2).messages[1]
            .tool_calls()
            .next()
            .unwrap()
            .clone();
        assert_eq!(sent.arguments(), r#"{"n":1}"#);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e6_a_refused_edit_can_be_mended_and_an_edit_that_changes_nothing_says_nothing() {
    in_every_way(async |case: &mut PausingCase| {
        both_kinds(case).await;
        let edit = |arguments| ToolApprovalResponse::approve_edited(case.id("c1"), arguments);
        let (bad, same) = (edit(json!({"n": 1.5})), edit(json!({"n": 1})));
        let leg = case.answer([bad]).await;
        assert_refused(&leg, "malformed", &["c1 approval", "c2 data"]);
        let still = case.answer([same]).await;
        assert_eq!(*still.reason(), FinishReason::AwaitingApproval);
        assert_eq!(still.result("c1").executed_arguments(), None);
        assert_lines(&still.lines(), &["R(c1, ok: 'wiped')"]);
        let data = ToolApprovalResponse::resume(case.id("c2"), json!(1));
        assert_completed(&case.answer([data]).await);
    })
    .await;
}
