//! Scripted tools do as scripted, and count it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use raf_core::Cancellation;
use raf_tools::{ITool, ToolArguments, ToolContext, ToolErrorKind, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::{Behaviour, CountingTool, EchoTool, FailingTool, HangingTool, PanickingTool};
use crate::{Latch, ScriptedTool};

fn arguments(value: &Value) -> ToolArguments {
    value.as_object().unwrap().clone()
}

async fn text(tool: &dyn ITool) -> String {
    let output = tool
        .call(
            ToolContext::detached("c1"),
            arguments(&json!({"text": "hi"})),
        )
        .await;
    match output.unwrap() {
        ToolOutput::Text(text) => text,
        ToolOutput::Json(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn behaviours_come_in_order_then_the_lasting_one() {
    let tool = ScriptedTool::new("t")
        .then(Behaviour::text("a"))
        .then(Behaviour::void())
        .always(Behaviour::echo());
    assert_eq!(text(&tool).await, "a");
    assert_eq!(text(&tool).await, "Void");
    assert_eq!(text(&tool).await, r#"{"text":"hi"}"#);
    assert_eq!((tool.log().entries(), tool.log().completions()), (3, 3));
    let call = &tool.log().calls()[0];
    assert_eq!((call.call_id.as_str(), call.attempt), ("c1", 1));
    assert_eq!(call.idempotency_key, "detached/0/0");
}

#[tokio::test]
async fn an_entry_beyond_the_script_is_fatal_and_a_violation() {
    let tool = ScriptedTool::new("t").then(Behaviour::void());
    text(&tool).await;
    let error = tool
        .call(ToolContext::detached("c2"), ToolArguments::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ToolErrorKind::Fatal);
    assert!(tool.log().violations()[0].contains("no behaviour left"));
}

#[tokio::test]
async fn bodies_in_flight_are_counted() {
    let barrier = Arc::new(Barrier::new(3));
    let tool = ScriptedTool::new("t").always(Behaviour::text("x").after_barrier(&barrier));
    tokio::join!(text(&tool), text(&tool), text(&tool));
    assert_eq!((tool.log().max_concurrent(), tool.log().running()), (3, 0));
}

#[tokio::test]
async fn a_dropped_body_and_a_panic_are_told_apart() {
    let hanging = HangingTool::new();
    assert!(text(&hanging).now_or_never().is_none());
    assert_eq!(
        (hanging.log().dropped(), hanging.log().completions()),
        (1, 0)
    );
    let panicking = PanickingTool::new();
    let caught = AssertUnwindSafe(text(&panicking)).catch_unwind().await;
    assert!(caught.is_err());
    assert_eq!(
        (panicking.log().panics(), panicking.log().dropped()),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn steps_come_before_the_end() {
    let (gate, entered) = (Latch::new(), Latch::new());
    let tool = ScriptedTool::new("t").always(
        Behaviour::text("x")
            .after_opening(&entered)
            .after_sleep(Duration::from_mins(1))
            .after_latch(&gate),
    );
    let (said, ()) = tokio::join!(text(&tool), async {
        entered.wait().await;
        tool.log().wait_for_entries(1).await;
        gate.open();
    });
    assert_eq!(said, "x");
}

#[tokio::test]
async fn a_body_can_wait_for_its_token_and_give_up_or_go_on() {
    let cancellation = Cancellation::new();
    cancellation.cancel();
    let context = || {
        ToolContext::builder("c1", "t")
            .cancellation(cancellation.clone())
            .build()
    };
    let gives_up = ScriptedTool::new("t").always(Behaviour::until_cancelled());
    let error = gives_up
        .call(context(), ToolArguments::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ToolErrorKind::Cancelled);
    let goes_on = ScriptedTool::new("t").always(Behaviour::text("late").after_cancellation());
    assert!(goes_on.call(context(), ToolArguments::new()).await.is_ok());
}

#[tokio::test]
async fn an_interrupt_returns_the_answer_when_it_is_entered_again() {
    let tool = ScriptedTool::new("t").always(Behaviour::interrupt(json!("who?"), json!(1)));
    let error = tool
        .call(ToolContext::detached("c1"), ToolArguments::new())
        .await
        .unwrap_err();
    let interrupt = error.as_interrupt().unwrap();
    assert_eq!(interrupt.information, json!("who?"));
    let resumption = raf_tools::Resumption::new(interrupt.state.clone(), json!("me"));
    let context = ToolContext::builder("c1", "t")
        .resumption(Some(resumption))
        .build();
    let output = tool.call(context, ToolArguments::new()).await.unwrap();
    assert!(matches!(output, ToolOutput::Json(answer) if answer == json!("me")));
}

#[tokio::test]
async fn the_ready_made_tools_do_as_their_names_say() {
    assert_eq!(text(&EchoTool::named("say")).await, "hi");
    assert_eq!(EchoTool::named("say").name(), "say");
    let counting = CountingTool::new();
    text(&counting).await;
    assert_eq!(text(&counting).await, "2");
    let error = FailingTool::new()
        .call(ToolContext::detached("c"), ToolArguments::new())
        .await
        .unwrap_err();
    assert!(!error.is_model_visible());
}
