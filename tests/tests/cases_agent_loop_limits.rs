//! Public bug reports as scripts: cut replies, the last turn, forced choice (C14 to C16).

use raf_core::{
    ChatClientRunOptions, ChatMessage, FinishReason, MessageRole, SkipReason, ToolChoice,
    ToolErrorClass, ToolOutcome,
};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tests::in_both_forms;
use raf_tests::leg::assert_lines;
use serde_json::json;

const TRUNCATED: ToolOutcome = ToolOutcome::skipped(SkipReason::Truncated);
const LIMIT: ToolOutcome = ToolOutcome::skipped(SkipReason::Limit);

fn write_tool() -> ScriptedTool {
    ScriptedTool::new("write")
        .with_parameters(&json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "body": {"type": "string"}},
            "required": ["path", "body"],
        }))
        .always(Behaviour::text("written"))
}

const A: &str = r#"{"path":"a","body":"x"}"#;
const B: &str = r#"{"path":"b","body":"y"}"#;
const B_CUT: &str = r#"{"path":"b","bo"#;

/// The two ways in which a cut reply shows its last call, and what is kept of it.
#[tokio::test(start_paused = true)]
async fn c14_response_cut_off_by_the_token_limit() {
    for kept in [true, false] {
        in_both_forms(async |case| {
            let write = case.tool(write_tool());
            let cut = Reply::text("Writing.").call("c1", "write", A);
            let cut = if kept {
                cut.incomplete_call("c2", "write", B_CUT)
            } else {
                cut.open_call("c2", "write", B_CUT)
            };
            case.replies([
                cut.usage(10, 50).length(),
                Reply::calls([("c3", "write", A), ("c4", "write", B)]),
                Reply::text("both written"),
            ]);
            let budget = |tokens| ChatClientRunOptions::new().with_max_output_tokens(tokens);
            let first = case.say_with("write two files", budget(50)).await;
            assert_eq!(first.reason(), &FinishReason::Length);
            assert_eq!((case.request_count(), write.entries()), (1, 0));
            assert_eq!(first.outcome("c1"), TRUNCATED);

            let second = case.say_with("go on", budget(500)).await;
            assert_eq!(second.reason(), &FinishReason::Stop);
            let mut expected = vec!["U:write two files"];
            expected.extend(if kept {
                vec![
                    "A:Writing. [c1,c2]",
                    "R(c1, skipped truncated: 'Not run: the reply was cut off*",
                    "R(c2, skipped truncated: 'Not run: the reply was cut off*",
                ]
            } else {
                vec![
                    "A:Writing. [c1]",
                    "R(c1, skipped truncated: 'Not run: the reply was cut off*",
                ]
            });
            expected.push("U:go on");
            assert_lines(&case.request(2).lines(), &expected);
            assert_eq!(case.request(2).options.max_output_tokens, Some(500));
            assert_eq!(write.call_ids(), ["c3", "c4"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn c14_an_unparsable_last_call_at_the_end_of_the_budget_counts_as_truncated() {
    in_both_forms(async |case| {
        let write = case.tool(write_tool());
        case.replies([Reply::calls([("c1", "write", A), ("c2", "write", B_CUT)]).usage(10, 50)]);
        let options = ChatClientRunOptions::new().with_max_output_tokens(50);
        let leg = case.say_with("write two files", options).await;
        assert_eq!(leg.reason(), &FinishReason::Length);
        assert_eq!(leg.outcome("c1"), TRUNCATED);
        assert_eq!(leg.outcome("c2"), TRUNCATED);
        assert_eq!((case.request_count(), write.entries()), (1, 0));
    })
    .await;
}

/// The contrary: below the budget, or not the last call, it is ordinary bad JSON.
#[tokio::test(start_paused = true)]
async fn c14_an_unparsable_call_is_bad_json_else() {
    let in_order = [("c1", "write", A), ("c2", "write", B_CUT)];
    let [good, bad] = in_order;
    for (calls, output_tokens) in [(in_order, 49), ([bad, good], 50)] {
        in_both_forms(async |case| {
            let write = case.tool(write_tool());
            case.replies([
                Reply::calls(calls).usage(10, output_tokens),
                Reply::text("done"),
            ]);
            let options = ChatClientRunOptions::new().with_max_output_tokens(50);
            let leg = case.say_with("write two files", options).await;
            assert_eq!(leg.reason(), &FinishReason::Stop);
            assert_eq!(leg.outcome("c1"), ToolOutcome::Ok);
            let invalid = ToolOutcome::Error(ToolErrorClass::InvalidArguments);
            assert_eq!(leg.outcome("c2"), invalid);
            assert_eq!(write.call_ids(), ["c1"]);
        })
        .await;
    }
}

fn research() -> [Reply; 3] {
    [
        Reply::calls([("c1", "look", r#"{"q":1}"#)]),
        Reply::calls([("c2", "look", r#"{"q":2}"#)]),
        Reply::text("Partial answer.").call("c3", "look", r#"{"q":3}"#),
    ]
}

#[tokio::test(start_paused = true)]
async fn c15_last_allowed_turn() {
    in_both_forms(async |case| {
        let look = case.tool(ScriptedTool::returning("look", "data"));
        let options = FunctionInvokingOptions::new().with_max_rounds(3);
        case.options(options.with_wrap_up(true));
        case.replies(research());
        case.replies([Reply::text("ok")]);
        let first = case.say("research").await;
        assert_eq!(first.reason(), &FinishReason::MaxRounds);
        assert_eq!(first.text(), "Partial answer.");
        assert_eq!((first.requests().len(), look.entries()), (3, 2));
        for n in [1, 2] {
            assert_eq!(case.request(n).options.tool_choice, None);
        }
        let third = case.request(3);
        assert_eq!(third.options.tool_choice, Some(ToolChoice::None));
        assert_eq!(third.tool_names(), ["look"]);
        assert_lines(
            &third.lines(),
            &[
                "U:research",
                "A:[c1]",
                "R(c1, ok: 'data')",
                "A:[c2]",
                "R(c2, ok: 'data')",
            ],
        );
        assert_eq!(first.outcome("c3"), LIMIT);
        // The model's own words are the answer: nobody else speaks.
        let texts: Vec<String> = first
            .messages()
            .iter()
            .filter(|message| message.role() != MessageRole::Tool)
            .map(ChatMessage::text)
            .collect();
        assert_eq!(texts, ["", "", "Partial answer."]);

        let second = case.say("and now?").await;
        assert_eq!(second.reason(), &FinishReason::Stop);
        assert_lines(
            &case.request(4).lines()[5..],
            &[
                "A:Partial answer. [c3]",
                "R(c3, skipped limit: '*",
                "U:and now?",
            ],
        );
        assert_eq!(look.entries(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c15_without_a_wrap_up_the_last_round_runs_its_calls() {
    in_both_forms(async |case| {
        let look = case.tool(ScriptedTool::returning("look", "data"));
        case.options(FunctionInvokingOptions::new().with_max_rounds(3));
        case.replies(research());
        case.replies([Reply::text("ok")]);
        let first = case.say("research").await;
        assert_eq!(first.reason(), &FinishReason::MaxRounds);
        assert_eq!((first.requests().len(), look.entries()), (3, 3));
        assert_eq!(first.outcome("c3"), ToolOutcome::Ok);
        assert_eq!(case.request(3).options.tool_choice, None);

        let second = case.say("and now?").await;
        assert_eq!(second.reason(), &FinishReason::Stop);
        assert_lines(
            &case.request(4).lines()[5..],
            &["A:Partial answer. [c3]", "R(c3, ok: 'data')", "U:and now?"],
        );
    })
    .await;
}

/// Calls as long as a call is forced, then answers.
fn obedient() -> Reply {
    Reply::from_fn(|request| {
        let forced = request.options.tool_choice.as_ref();
        if forced.is_some_and(ToolChoice::is_forced) {
            let id = format!("c{}", request.index + 1);
            Reply::calls([(&*id, "show", "{}")])
        } else {
            Reply::text("42")
        }
    })
}

fn is_auto(choice: Option<&ToolChoice>) -> bool {
    matches!(choice, None | Some(ToolChoice::Auto))
}

#[tokio::test(start_paused = true)]
async fn c16_forced_tool_choice() {
    for choice in [ToolChoice::Required, ToolChoice::Named("show".to_owned())] {
        in_both_forms(async |case| {
            let show = case.tool(ScriptedTool::returning("show", "t1,t2"));
            case.options(FunctionInvokingOptions::new().with_max_rounds(10));
            let _ = case.model().clone().with_fallback(obedient());
            let options = ChatClientRunOptions::new().with_tool_choice(choice.clone());
            let leg = case.say_with("average age?", options.clone()).await;
            assert_eq!((leg.reason(), &*leg.text()), (&FinishReason::Stop, "42"));
            assert_eq!((case.request_count(), show.entries()), (2, 1));
            assert_eq!(case.request(1).options.tool_choice.as_ref(), Some(&choice));
            let second = case.request(2);
            assert!(is_auto(second.options.tool_choice.as_ref()));
            assert_lines(
                &second.lines(),
                &["U:average age?", "A:[c1]", "R(c1, ok: 't1,t2')"],
            );

            // A new turn of the user starts forced again.
            let leg = case.say_with("and now?", options).await;
            assert_eq!(leg.reason(), &FinishReason::Stop);
            assert_eq!(case.request(3).options.tool_choice.as_ref(), Some(&choice));
            assert!(is_auto(case.request(4).options.tool_choice.as_ref()));
            assert_eq!((case.request_count(), show.entries()), (4, 2));
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn c16_to_keep_forcing_ends_with_the_limit_on_rounds() {
    in_both_forms(async |case| {
        let show = case.tool(ScriptedTool::returning("show", "t1,t2"));
        let options = FunctionInvokingOptions::new().with_max_rounds(10);
        case.options(options.with_keep_forcing(true).with_no_progress_rounds(0));
        let _ = case.model().clone().with_fallback(obedient());
        let options = ChatClientRunOptions::new().with_tool_choice(ToolChoice::Required);
        let leg = case.say_with("average age?", options).await;
        assert_eq!(leg.reason(), &FinishReason::MaxRounds);
        assert_eq!((case.request_count(), show.entries()), (10, 10));
        for n in 1..=10 {
            let choice = case.request(n).options.tool_choice.clone();
            assert_eq!(choice, Some(ToolChoice::Required));
        }
    })
    .await;
}
