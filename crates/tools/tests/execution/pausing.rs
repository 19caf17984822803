//! Middleware and handlers when calls wait: who asked, who sees the answer, what is not run again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use raf_core::{
    CancellationToken, Content, ErrorKind, ToolApprovalResponse, ToolErrorClass, ToolOutcome,
    WaitsFor,
};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{
    ExecuteOptions, Execution, ExecutionMode, ExecutionOptions, IToolMiddleware, PreparingCall,
    ToolAliases, ToolError, ToolExecutor, ToolLimits, ToolOutput, UnknownToolPolicy,
};
use serde_json::{Value, json};

use super::logging::{Around, Log, Named, Observer, around, said};
use super::{execute, executor, message, texts};

/// Answers the pending calls in order, through the JSON form of the paused batch.
async fn go_on(
    executor: &ToolExecutor,
    paused: &Execution,
    answer: impl Fn(&str) -> ToolApprovalResponse,
) -> Execution {
    let ids = paused.pending.iter().filter_map(|call| call.request_id());
    let answers: Vec<_> = ids.map(answer).collect();
    resume(executor, paused, &answers).await.expect("they fit")
}

async fn resume(
    executor: &ToolExecutor,
    paused: &Execution,
    answers: &[ToolApprovalResponse],
) -> raf_core::Result<Execution> {
    let paused = serde_json::to_string(paused.paused.as_ref().expect("it waits"))
        .expect("a record serialises");
    let paused = serde_json::from_str(&paused).expect("and back");
    executor
        .resume(paused, answers, ExecuteOptions::new())
        .await
}

fn data(data: Value) -> impl Fn(&str) -> ToolApprovalResponse {
    move |id| ToolApprovalResponse::resume(id, data.clone())
}

/// Asks before the tools `f…`, and goes on with any answer to that.
fn asks_before() -> Around {
    around(|call, next| {
        let resumption = call.context.resumption();
        let passed = call.context.attempt() > 1
            || resumption.is_some_and(|answer| answer.state == json!("mine"));
        let asks = call.context.tool_name().starts_with('f') && !passed;
        Box::pin(async move {
            if asks {
                return Err(ToolError::interrupt(json!("may I?"), json!("mine")));
            }
            next.run(call).await
        })
    })
}

#[tokio::test]
async fn te_a_middleware_asks_before_a_body_that_knows_nothing_of_it() {
    let log = Log::default();
    let f = ScriptedTool::returning("f", "F");
    let g = ScriptedTool::returning("g", "G");
    let options = ExecutionOptions::new()
        .with_middleware(Named("A", Arc::clone(&log)))
        .with_middleware(asks_before())
        .with_callback(Observer(Arc::clone(&log)));
    let executor = executor(options, &[&f, &g]);
    let paused = execute(&executor, &["g#1", "f#2"]).await;
    assert_eq!(f.log().entries(), 0);
    assert_eq!(paused.pending.len(), 1);
    let lines = said(&log);
    assert!(!lines.iter().any(|line| line.starts_with("start f")));
    assert!(
        !lines.iter().any(|line| line.starts_with("interrupt")),
        "no body asked"
    );

    let end = go_on(&executor, &paused, data(json!("yes"))).await;
    assert_eq!(texts(&end), ["1=G", "2=F"]);
    let expected = ["A> 2", "start f {}", "end true", "<A"];
    assert_eq!(
        said(&log),
        expected,
        "what had finished does not pass again"
    );
    let calls = f.log().calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        calls[0].attempt, 1,
        "the body is entered for the first time"
    );
    assert_eq!(calls[0].resumption, None, "the answer is not the body's");
    assert_eq!(g.log().entries(), 1);
}

#[tokio::test]
async fn te_a_middleware_and_then_its_body_ask_and_each_sees_its_own_answer() {
    let f = ScriptedTool::new("f").always(Behaviour::interrupt(json!("which?"), json!("body's")));
    let options = ExecutionOptions::new().with_middleware(asks_before());
    let executor = executor(options, &[&f]);
    let first = execute(&executor, &["f#1"]).await;
    let second = go_on(&executor, &first, data(json!("yes"))).await;
    let WaitsFor::Data { information, .. } = &second.pending[0].waits_for else {
        panic!("it asks for data");
    };
    assert_eq!(*information, json!("which?"));
    let end = go_on(&executor, &second, data(json!("this one"))).await;
    assert_eq!(texts(&end), ["1=this one"]);
    let calls = f.log().calls();
    let attempts: Vec<u32> = calls.iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    assert_eq!(calls[1].resumption.as_ref().unwrap().state, json!("body's"));
    assert_eq!(calls[0].idempotency_key, calls[1].idempotency_key);
}

/// Asks behind the body; with an answer it calls on again if `again`, else answers from its state.
fn asks_behind(again: bool) -> Around {
    around(move |call, next| {
        Box::pin(async move {
            if let Some(answer) = call.context.resumption()
                && !again
            {
                return Ok(format!("{} {}", answer.state, answer.data).into());
            }
            let resumed = call.context.resumption().is_some();
            match next.run(call).await? {
                ToolOutput::Text(text) if !resumed => {
                    Err(ToolError::interrupt(json!("good?"), json!(text)))
                }
                output => Ok(output),
            }
        })
    })
}

#[tokio::test]
async fn d2_a_body_that_ended_is_not_entered_again_for_a_question_asked_behind_it() {
    for (again, idempotent, entries) in [(false, false, 1), (true, false, 1), (true, true, 2)] {
        let f = ScriptedTool::returning("f", "F")
            .with_limits(ToolLimits::new().with_idempotent(idempotent));
        let options = ExecutionOptions::new().with_middleware(asks_behind(again));
        let executor = executor(options, &[&f]);
        let paused = execute(&executor, &["f#1"]).await;
        assert_eq!((f.log().entries(), paused.pending.len()), (1, 1));
        let end = go_on(&executor, &paused, data(json!("yes"))).await;
        assert_eq!(f.log().entries(), entries);
        match (again, idempotent) {
            (false, _) => assert_eq!(texts(&end), [r#"1="F" "yes""#]),
            (true, false) => assert!(end.results[0].outcome().is_error()),
            (true, true) => {
                assert_eq!(texts(&end), ["1=F"]);
                assert_eq!(f.log().calls()[1].attempt, 2);
            }
        }
    }
}

#[tokio::test]
async fn te23_an_interrupt_in_the_middle_of_a_stream_discards_what_came_before() {
    for wrapped in [false, true] {
        let s = ScriptedTool::new("s").always(Behaviour::custom(|context, _| {
            let end = match context.resumption() {
                None => Err(ToolError::interrupt(json!("which?"), json!("kept"))),
                Some(answer) => Ok(Content::text(answer.data.as_str().unwrap_or_default())),
            };
            let pieces = [Ok(Content::text("p")), end];
            std::future::ready(Ok(ToolOutput::stream(futures::stream::iter(pieces))))
        }));
        let a = ScriptedTool::new("a").always(Behaviour::pieces(["1", "2"].map(Content::text)));
        let log = Log::default();
        let mut options = ExecutionOptions::new();
        if wrapped {
            options = options.with_middleware(Named("A", Arc::clone(&log)));
        }
        let executor = executor(options, &[&s, &a]);
        let updates = executor
            .stream(&message(&["s#1", "a#2"]), ExecuteOptions::new())
            .unwrap();
        let last = updates.collect::<Vec<_>>().await.pop();
        let Some(raf_tools::ExecutionUpdate::End(streamed)) = last else {
            panic!("the end comes last");
        };
        let whole = execute(&executor, &["s#1", "a#2"]).await;
        for paused in [*streamed, whole] {
            assert_eq!(texts(&paused), ["2=12"], "a is done, s is not");
            assert_eq!(paused.pending.len(), 1);
            let end = go_on(&executor, &paused, data(json!("!"))).await;
            assert_eq!(texts(&end), ["1=p!", "2=12"], "the first p is discarded");
        }
        let attempts: Vec<_> = s.log().calls().iter().map(|call| call.attempt).collect();
        assert_eq!(attempts, [1, 1, 2, 2]);
        assert_eq!(a.log().entries(), 2, "once per batch");
    }
}

/// Counts its prepare steps and writes the count into the arguments.
#[derive(Debug)]
struct Numbers(Arc<AtomicUsize>);

impl IToolMiddleware for Numbers {
    fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        call.arguments.insert("n".into(), json!(count));
        Ok(())
    }
}

#[tokio::test]
async fn e9_a_prepare_step_runs_once_and_what_it_wrote_is_shown_and_run() {
    let count = Arc::new(AtomicUsize::new(0));
    let f = ScriptedTool::new("f").gated().always(Behaviour::echo());
    let options = ExecutionOptions::new().with_middleware(Numbers(Arc::clone(&count)));
    let executor = executor(options, &[&f]);
    let paused = execute(&executor, &["f#1"]).await;
    let request = paused.pending[0].approval().unwrap();
    assert_eq!(request.arguments, json!({"n": 1}));
    let end = go_on(&executor, &paused, |id| ToolApprovalResponse::approve(id)).await;
    assert_eq!(texts(&end), [r#"1={"n":1}"#]);
    assert_eq!(end.results[0].executed_arguments(), Some(&json!({"n": 1})));
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn d1_arguments_that_change_after_a_yes_are_refused_also_in_later_legs() {
    // The first entry goes through unchanged and asks; the second is changed.
    let changes = || {
        around(|mut call, next| {
            if call.approved && (call.context.attempt() > 1 || call.arguments.contains_key("now")) {
                call.arguments.insert("x".into(), json!("changed"));
            }
            Box::pin(next.run(call))
        })
    };
    let f = ScriptedTool::new("f")
        .gated()
        .always(Behaviour::interrupt(json!("which?"), json!(1)));
    let options = ExecutionOptions::new().with_middleware(changes());
    let executor = executor(options, &[&f]);
    let refused = |end: &Execution| {
        let outcome = ToolOutcome::Error(ToolErrorClass::PermissionDenied);
        assert_eq!(end.results[0].outcome(), outcome);
        assert!(end.results[0].text().contains("after they were approved"));
    };
    let paused = execute(&executor, &[r#"f#1({"now":true})"#]).await;
    refused(&go_on(&executor, &paused, |id| ToolApprovalResponse::approve(id)).await);
    assert_eq!(f.log().entries(), 0);

    let paused = execute(&executor, &["f#1"]).await;
    let asks = go_on(&executor, &paused, |id| ToolApprovalResponse::approve(id)).await;
    assert_eq!(f.log().entries(), 1);
    refused(&go_on(&executor, &asks, data(json!(2))).await);
    assert_eq!(f.log().entries(), 1, "that a person approved is recorded");
}

#[tokio::test]
async fn e4_a_yes_that_is_held_back_by_an_earlier_call_is_kept() {
    let tool = |name| ScriptedTool::new(name).gated().always(Behaviour::echo());
    let (a, b) = (tool("a"), tool("b"));
    let options = ExecutionOptions::new().with_mode(ExecutionMode::Sequential);
    let executor = executor(options, &[&a, &b]);
    let paused = execute(&executor, &["a#1", "b#2"]).await;
    let id = |paused: &Execution, index: usize| {
        paused.pending[index]
            .request_id()
            .expect("it waits")
            .to_owned()
    };
    let edited = ToolApprovalResponse::approve_edited(id(&paused, 1), json!({"x": 2}));
    let held = resume(&executor, &paused, &[edited]).await.unwrap();
    assert_eq!(b.log().entries(), 0, "order counts");
    let first = ToolApprovalResponse::approve(id(&held, 0));
    let end = resume(&executor, &held, &[first]).await.unwrap();
    assert_eq!((a.log().entries(), b.log().entries()), (1, 1));
    let text = end.results[1].text();
    assert!(text.starts_with(r#"{"x":2}"#), "{text}");
    assert!(text.contains("A person edited the arguments"), "{text}");
}

#[tokio::test]
async fn te_w23_an_alias_of_a_gated_tool_is_asked_about_by_its_canonical_name() {
    let search = ScriptedTool::new("search")
        .gated()
        .always(Behaviour::echo());
    let aliases = ToolAliases::new()
        .with_name("search", "find")
        .with_key("search", "query", "q");
    let log = Log::default();
    let options = ExecutionOptions::new()
        .with_aliases(aliases)
        .with_callback(Observer(Arc::clone(&log)));
    let executor = executor(options, &[&search]);
    let paused = execute(&executor, &[r#"find#1({"q":"x"})"#]).await;
    let request = paused.pending[0].approval().unwrap();
    assert_eq!(request.tool, "search");
    assert_eq!(request.arguments, json!({"query": "x"}));
    assert_eq!(search.log().entries(), 0);
    let end = go_on(&executor, &paused, |id| ToolApprovalResponse::approve(id)).await;
    assert_eq!(texts(&end), [r#"1={"query":"x"}"#]);
    assert_eq!(end.results[0].name(), "find", "as the model called it");
    assert_eq!(said(&log), [r#"start search {"query":"x"}"#, "end true"]);
}

#[tokio::test]
async fn te_a_handler_of_unknown_tools_is_found_again_and_stands_in_for_no_other() {
    let handler = ScriptedTool::new("handler").always(Behaviour::interrupt(json!("?"), json!(1)));
    let handled = |handler: &ScriptedTool| {
        let policy = UnknownToolPolicy::Handle(Arc::new(handler.clone()));
        ExecutionOptions::new().with_unknown_tools(policy)
    };
    let with_handler = executor(handled(&handler), &[]);
    let paused = execute(&with_handler, &[r#"ghost#1({"a":1})"#]).await;
    assert_eq!(paused.pending.len(), 1);
    let end = go_on(&with_handler, &paused, data(json!("found"))).await;
    assert_eq!(texts(&end), ["1=found"]);
    assert_eq!(handler.log().entries(), 2);

    let answer = |paused: &Execution| {
        let id = paused.pending[0].request_id().expect("it waits");
        [ToolApprovalResponse::resume(id, json!(1))]
    };
    let without = executor(ExecutionOptions::new(), &[]);
    let error = resume(&without, &paused, &answer(&paused))
        .await
        .unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Configuration,
        "its handler is gone"
    );

    let known = ScriptedTool::new("known").always(Behaviour::interrupt(json!("?"), json!(1)));
    let with_tool = executor(handled(&handler), &[&known]);
    let paused = execute(&with_tool, &["known#1"]).await;
    let error = resume(&with_handler, &paused, &answer(&paused))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration, "its tool is gone");
    assert_eq!(handler.log().entries(), 2, "no handler runs for it");
}

#[tokio::test]
async fn te_a_middleware_may_ask_about_an_unknown_tool() {
    let options = ExecutionOptions::new().with_middleware(asks_before());
    let executor = executor(options, &[]);
    let paused = execute(&executor, &["f_ghost#1"]).await;
    assert_eq!(paused.pending.len(), 1);
    let end = go_on(&executor, &paused, data(json!("yes"))).await;
    let outcome = ToolOutcome::Error(ToolErrorClass::UnknownTool);
    assert_eq!(end.results[0].outcome(), outcome);
}

#[tokio::test]
async fn d10_a_handler_of_unknown_tools_keeps_its_gate() {
    let handler = ScriptedTool::returning("handler", "H").gated();
    let policy = UnknownToolPolicy::Handle(Arc::new(handler.clone()));
    let executor = executor(ExecutionOptions::new().with_unknown_tools(policy), &[]);
    let paused = execute(&executor, &["ghost#1"]).await;
    assert_eq!(handler.log().entries(), 0);
    let end = go_on(&executor, &paused, |id| ToolApprovalResponse::approve(id)).await;
    assert_eq!(texts(&end), ["1=H"]);
}

#[tokio::test]
async fn c1_a_call_that_asks_while_it_is_cancelled_had_started() {
    let token = CancellationToken::new();
    let asks = Behaviour::interrupt(json!("?"), json!(1)).after_cancellation();
    let f = ScriptedTool::new("f").always(asks);
    let executor = executor(ExecutionOptions::new(), &[&f]);
    let message = message(&["f#1"]);
    let run = executor.execute(
        &message,
        ExecuteOptions::new().with_cancellation(token.clone()),
    );
    let log = f.log().clone();
    let stop = async {
        log.wait_for_entries(1).await;
        token.cancel();
    };
    let (end, ()) = tokio::join!(run, stop);
    let end = end.unwrap();
    assert!(end.pending.is_empty());
    let outcome = ToolOutcome::Cancelled { started: true };
    assert_eq!(end.results[0].outcome(), outcome);
}
