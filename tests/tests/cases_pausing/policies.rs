//! Who decides before people do (E9), and what may still change after a yes (E3).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use raf_core::{
    ApprovalScope, ChatClientRunOptions, ToolApprovalResponse, ToolErrorClass, ToolOutcome,
};
use raf_framework::{FunctionInvokingOptions, PolicyDecision, policy_fn};
use raf_testing::{Behaviour, Reply, ScriptedTool, ToolLog};
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{PausingCase, Reload, in_every_way};

use crate::support::{assert_completed, assert_paused};

/// A loop whose policy looks at the argument `do`.
fn with_policy(case: &mut PausingCase) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let policy = policy_fn(move |call| {
        count.fetch_add(1, Ordering::SeqCst);
        match call.arguments.get("do").and_then(|word| word.as_str()) {
            Some("allow") => PolicyDecision::Allow,
            Some("ask") => PolicyDecision::Ask {
                reason: Some("it is large".to_owned()),
            },
            Some("deny") => PolicyDecision::Deny {
                reason: Some("house rule".to_owned()),
            },
            Some("panic") => panic!("a scripted panic"),
            _ => PolicyDecision::Inherit,
        }
    });
    case.options(FunctionInvokingOptions::new().with_approval_policy(policy));
    asked
}

#[tokio::test(start_paused = true)]
async fn e9_policies_allow_ask_and_deny_before_people_do() {
    in_every_way(async |case: &mut PausingCase| {
        with_policy(case);
        let gated = case.tool(ScriptedTool::returning("gated", "g").gated());
        case.allow_unasked();
        let free = case.tool(ScriptedTool::returning("free", "f"));
        case.replies([
            Reply::calls([
                ("c1", "gated", r#"{"do":"allow"}"#),
                ("c2", "free", r#"{"do":"ask"}"#),
                ("c3", "free", r#"{"do":"deny"}"#),
                ("c4", "gated", r#"{"do":"deny"}"#),
                ("c5", "free", r#"{"do":"panic"}"#),
                ("c6", "free", "{}"),
                ("c7", "gated", "{}"),
            ]),
            Reply::text("done"),
        ]);
        let paused = case.say("go").await;
        assert_paused(&paused, &["c2 approval", "c7 approval"]);
        assert_eq!(
            case.ledger().asked[0].reason.as_deref(),
            Some("it is large")
        );
        assert_eq!(case.ledger().asked[1].reason, None);
        assert_eq!(gated.call_ids(), ["c1"]);
        assert_eq!(free.call_ids(), ["c6"]);
        assert_lines(
            &paused.lines(),
            &[
                "A:[c1,c2,c3,c4,c5,c6,c7]",
                "R(c1, ok: 'g')",
                "R(c3, denied: 'Rejected: house rule')",
                "R(c4, denied: 'Rejected: house rule')",
                "R(c5, error panicked: *",
                "R(c6, ok: 'f')",
            ],
        );
        let panicked = ToolOutcome::Error(ToolErrorClass::Panicked);
        assert_eq!(paused.outcome("c5"), panicked);
        let done = case.answer([case.yes("c2"), case.yes("c7")]).await;
        assert_completed(&done);
        assert_eq!(free.call_ids(), ["c6", "c2"]);
        assert_eq!(gated.call_ids(), ["c1", "c7"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e9_a_policy_is_asked_once_when_planned_and_once_at_an_approved_execution() {
    in_every_way(async |case: &mut PausingCase| {
        let asked = with_policy(case);
        case.tool(ScriptedTool::returning("free", "f"));
        case.replies([
            Reply::calls([("c1", "free", "{}"), ("c2", "free", r#"{"do":"ask"}"#)]),
            Reply::text("done"),
        ]);
        case.say("go").await;
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        case.answer([]).await;
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        case.answer([case.yes("c2")]).await;
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    })
    .await;
}

/// Invalid calls are not put before a policy or a person (D3).
#[tokio::test(start_paused = true)]
async fn e9_invalid_and_unknown_calls_are_asked_of_nobody() {
    in_every_way(async |case: &mut PausingCase| {
        let asked = with_policy(case);
        let schema = serde_json::json!({"type": "object", "required": ["n"]});
        let f = ScriptedTool::returning("f", "r").with_parameters(&schema);
        case.tool(f.gated());
        case.replies([
            Reply::calls([("c1", "f", "{}"), ("c2", "f", "[1]"), ("c3", "nope", "{}")]),
            Reply::text("done"),
        ]);
        let done = case.say("go").await;
        assert_completed(&done);
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        assert!(case.ledger().asked.is_empty());
    })
    .await;
}

/// Policy and schema are looked at again at execution, and can only tighten: never ask again.
#[tokio::test(start_paused = true)]
async fn e3_at_execution_a_policy_can_only_tighten() {
    let [allow, ask, deny] = [0, 1, 2];
    for (later, runs) in [(allow, true), (ask, true), (deny, false)] {
        in_every_way(async |case: &mut PausingCase| {
            let answered = Arc::new(AtomicBool::new(false));
            let flag = Arc::clone(&answered);
            let policy = policy_fn(move |_| {
                let reason = Some("not any more".to_owned());
                match flag.load(Ordering::SeqCst) {
                    false => PolicyDecision::Inherit,
                    true if later == allow => PolicyDecision::Allow,
                    true if later == ask => PolicyDecision::Ask { reason },
                    true => PolicyDecision::Deny { reason },
                }
            });
            case.options(FunctionInvokingOptions::new().with_approval_policy(policy));
            let f = case.tool(ScriptedTool::returning("f", "r").gated());
            case.replies([Reply::calls([("c1", "f", "{}")]), Reply::text("done")]);
            case.say("go").await;
            answered.store(true, Ordering::SeqCst);
            let done = case.answer([case.yes("c1")]).await;
            assert_completed(&done);
            assert_eq!(f.entries(), usize::from(runs));
            let line = if runs {
                "R(c1, ok: 'r')"
            } else {
                "R(c1, denied: 'Rejected: not any more')"
            };
            assert_lines(&case.request_lines(2), &["U:go", "A:[c1]", line]);
            assert_eq!(case.ledger().asked.len(), 1);
        })
        .await;
    }
}

/// What is remembered lives in the store: it is kept by the ways that keep that.
const KEEPING: [Reload; 3] = [Reload::Nothing, Reload::SameStore, Reload::StoreAndValue];

/// Plays a case in both forms, in the ways that keep the store.
async fn in_every_keeping_way(play: impl AsyncFn(&mut PausingCase)) {
    for reload in KEEPING {
        for form in [raf_tests::Form::Stream, raf_tests::Form::Fold] {
            let mut case = PausingCase::new(form, reload);
            play(&mut case).await;
            case.finish();
        }
    }
}

/// A gated tool `f` that says what it was given, another one, and no check that each was asked.
fn remembering(case: &mut PausingCase) -> ToolLog {
    let f = case.tool(ScriptedTool::new("f").gated().always(Behaviour::echo()));
    case.tool(ScriptedTool::returning("other", "o").gated());
    case.allow_unasked();
    f
}

fn session(id: Option<&str>) -> ChatClientRunOptions {
    let options = ChatClientRunOptions::new();
    match id {
        Some(id) => options.with_session_id(id),
        None => options,
    }
}

fn yes_for_ever(
    case: &PausingCase,
    label: &str,
    scope: ApprovalScope,
) -> Vec<ToolApprovalResponse> {
    vec![case.yes(label).with_remember(scope)]
}

#[tokio::test(start_paused = true)]
async fn e9_a_tool_can_be_allowed_for_the_session() {
    in_every_keeping_way(async |case: &mut PausingCase| {
        let f = remembering(case);
        let one = Some("one");
        case.replies([
            Reply::calls([("c1", "f", r#"{"n":1}"#)]),
            Reply::calls([("c2", "f", r#"{"n":2}"#)]),
            Reply::text("done"),
            Reply::calls([("c3", "f", r#"{"n":3}"#)]),
            Reply::calls([("c4", "other", "{}")]),
            Reply::text("denied"),
            Reply::calls([("c5", "f", r#"{"n":5}"#)]),
        ]);
        case.say_with("go", session(one)).await;
        let yes = yes_for_ever(case, "c1", ApprovalScope::ToolInSession);
        let done = case
            .go_on(session(one).with_tool_approval_responses(yes))
            .await;
        assert_completed(&done);
        assert_eq!(f.call_ids(), ["c1", "c2"]);
        // A later turn of the session; the rule is for this tool alone.
        let other = case.say_with("more", session(one)).await;
        assert_paused(&other, &["c4 approval"]);
        assert_eq!(f.call_ids(), ["c1", "c2", "c3"]);
        let no = [case.no("c4", "")];
        case.go_on(session(one).with_tool_approval_responses(no))
            .await;
        // Another session is asked.
        let asked = case.say_with("and here?", session(Some("two"))).await;
        assert_paused(&asked, &["c5 approval"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e9_arguments_can_be_allowed_for_the_session() {
    in_every_keeping_way(async |case: &mut PausingCase| {
        let f = remembering(case);
        let one = || session(Some("one"));
        case.replies([
            Reply::calls([("c1", "f", r#"{"a":1,"b":2}"#)]),
            Reply::calls([
                ("c2", "f", r#"{ "b": 2, "a": 1 }"#),
                ("c3", "f", r#"{"a":1}"#),
            ]),
        ]);
        case.say_with("go", one()).await;
        let yes = yes_for_ever(case, "c1", ApprovalScope::ArgumentsInSession);
        let paused = case.go_on(one().with_tool_approval_responses(yes)).await;
        assert_paused(&paused, &["c3 approval"]);
        assert_eq!(f.call_ids(), ["c1", "c2"]);
    })
    .await;
}

/// Without a session the rule ends with the run.
#[tokio::test(start_paused = true)]
async fn e9_without_a_session_a_rule_holds_for_the_run() {
    in_every_keeping_way(async |case: &mut PausingCase| {
        let f = remembering(case);
        case.replies([
            Reply::calls([("c1", "f", "{}")]),
            Reply::calls([("c2", "f", "{}")]),
            Reply::text("done"),
            Reply::calls([("c3", "f", "{}")]),
        ]);
        case.say("go").await;
        let yes = yes_for_ever(case, "c1", ApprovalScope::ToolInSession);
        assert_completed(&case.answer(yes).await);
        assert_eq!(f.call_ids(), ["c1", "c2"]);
        assert_paused(&case.say("again").await, &["c3 approval"]);
    })
    .await;
}

/// A no, and a yes that is refused, are no rule; a rule does not lift a policy's denial.
#[tokio::test(start_paused = true)]
async fn e9_only_a_yes_becomes_a_rule_and_a_denial_stands_above_it() {
    in_every_keeping_way(async |case: &mut PausingCase| {
        with_policy(case);
        let f = remembering(case);
        let one = || session(Some("one"));
        case.replies([
            Reply::calls([("c1", "f", r#"{"n":1}"#)]),
            Reply::calls([("c2", "f", r#"{"n":2}"#)]),
            Reply::calls([("c3", "f", r#"{"do":"deny"}"#), ("c4", "f", r#"{"n":4}"#)]),
            Reply::text("done"),
        ]);
        let scope = ApprovalScope::ToolInSession;
        case.say_with("go", one()).await;
        let wrong = case.yes("c1").with_arguments(serde_json::json!({}));
        let answers = [
            wrong.with_remember(scope),
            case.no("c1", "no").with_remember(scope),
        ];
        let paused = case
            .go_on(one().with_tool_approval_responses(answers))
            .await;
        assert_paused(&paused, &["c2 approval"]);
        let yes = yes_for_ever(case, "c2", scope);
        let done = case.go_on(one().with_tool_approval_responses(yes)).await;
        assert_completed(&done);
        assert_eq!(f.call_ids(), ["c2", "c4"]);
        assert_eq!(done.outcome("c3"), ToolOutcome::Denied);
    })
    .await;
}
