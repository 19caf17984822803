//! What the model reads of results, and wrong input.

use raf_core::{ChatMessage, Content, ErrorKind, MediaContent, ToolErrorClass, ToolOutcome};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{ExecuteOptions, ExecutionOptions, RegisteredTool, ToolLimits};
use serde_json::json;

use super::{execute, executor, message, texts};

#[tokio::test]
async fn d9_nothing_null_and_empty_are_told_apart_and_never_empty() {
    let mut seen = Vec::new();
    for behaviour in [
        Behaviour::void(),
        Behaviour::json(json!(null)),
        Behaviour::json(json!([])),
        Behaviour::json(json!({})),
        Behaviour::text(""),
        Behaviour::text("x"),
    ] {
        let tool = ScriptedTool::new("f").always(behaviour);
        let execution = execute(&executor(ExecutionOptions::new(), &[&tool]), &["f#1"]).await;
        let result = &execution.results[0];
        assert_eq!(result.outcome(), ToolOutcome::Ok);
        assert!(!result.text().is_empty());
        assert!(!seen.contains(&result.text()), "{}", result.text());
        seen.push(result.text());
    }
    let no_parts = ScriptedTool::new("f").always(Behaviour::parts([]));
    let execution = execute(&executor(ExecutionOptions::new(), &[&no_parts]), &["f#1"]).await;
    assert!(!execution.results[0].text().is_empty());
}

#[tokio::test]
async fn d9_a_large_result_is_cut_at_a_character_and_kept_whole_for_the_caller() {
    let whole = "ä".repeat(100);
    let image = Content::Image(MediaContent::base64("AA==", "image/png"));
    let parts = [Content::text(&whole), image.clone()];
    let tool = ScriptedTool::new("f").always(Behaviour::parts(parts.clone()));
    let options = ExecutionOptions::new().with_max_result_bytes(101);
    let execution = execute(&executor(options.clone(), &[&tool]), &["f#1"]).await;
    let result = &execution.results[0];
    assert!(result.text().starts_with(&"ä".repeat(50)));
    assert!(!result.text().contains(&"ä".repeat(51)));
    assert!(
        result.text().contains("100 of 200 bytes"),
        "{}",
        result.text()
    );
    assert!(result.content().contains(&image), "media stay");
    assert_eq!(result.full_content(), parts);

    let own = tool.with_limits(ToolLimits::new().with_max_result_bytes(1_000));
    let execution = execute(&executor(options, &[&own]), &["f#1"]).await;
    assert!(
        !execution.results[0].is_cut(),
        "the tool's own limit counts"
    );
}

#[tokio::test]
async fn d5_only_what_was_written_for_the_model_reaches_it() {
    let hidden = ScriptedTool::new("f").always(Behaviour::execution_failed("password=hunter2"));
    let execution = execute(&executor(ExecutionOptions::new(), &[&hidden]), &["f#1"]).await;
    let result = &execution.results[0];
    assert!(!result.text().contains("hunter2"));
    let id = result.correlation_id().unwrap();
    assert!(result.text().contains(id));

    let detailed = ExecutionOptions::new().with_detailed_errors(true);
    let execution = execute(&executor(detailed, &[&hidden]), &["f#1"]).await;
    assert!(execution.results[0].text().contains("hunter2"));

    for (behaviour, class, text) in [
        (
            Behaviour::tell_model("date must be in the future"),
            ToolErrorClass::Failed,
            "date must be in the future",
        ),
        (
            Behaviour::invalid_parameters("no such city"),
            ToolErrorClass::InvalidArguments,
            "no such city",
        ),
        (
            Behaviour::permission_denied("read only"),
            ToolErrorClass::PermissionDenied,
            "read only",
        ),
    ] {
        let tool = ScriptedTool::new("f").always(behaviour);
        let execution = execute(&executor(ExecutionOptions::new(), &[&tool]), &["f#1"]).await;
        assert_eq!(execution.results[0].outcome(), ToolOutcome::Error(class));
        assert_eq!(execution.results[0].text(), text, "verbatim");
    }
}

#[tokio::test]
async fn te07_an_unknown_tool_is_named_with_those_that_there_are() {
    let a = ScriptedTool::returning("a", "A");
    let execution = execute(
        &executor(ExecutionOptions::new(), &[&a]),
        &["a#1", "ghost#2"],
    )
    .await;
    assert_eq!(a.log().entries(), 1, "siblings run");
    let outcome = ToolOutcome::Error(ToolErrorClass::UnknownTool);
    assert_eq!(execution.results[1].outcome(), outcome);
    assert_eq!(
        texts(&execution)[1],
        "2=Unknown tool 'ghost'. Available tools: a."
    );

    let stop = ExecutionOptions::new().with_unknown_tools(raf_tools::UnknownToolPolicy::Stop);
    let a = ScriptedTool::returning("a", "A");
    let execution = execute(&executor(stop, &[&a]), &["a#1", "ghost#2"]).await;
    assert_eq!(a.log().entries(), 0);
    assert!(execution.results[1].text().contains("ghost"));
    assert_eq!(execution.results[1].call_id(), "2");
    assert_eq!(
        execution.termination,
        Some(raf_core::TerminationCause::UnknownTool)
    );
}

#[tokio::test]
async fn te14_the_tools_of_a_call_take_the_place_of_the_registered_ones() {
    let z = ScriptedTool::returning("z", "Z");
    let i = ScriptedTool::new("i").always(Behaviour::custom(|context, _| {
        let age = context.extensions().get::<u32>().map_or(0, |age| *age);
        std::future::ready(Ok(age.to_string().into()))
    }));
    let executor = executor(ExecutionOptions::new(), &[&z]);
    let d = ScriptedTool::returning("d", "D");
    let given = [&i, &d].map(|tool| RegisteredTool::new(tool.clone()).unwrap());
    let options = ExecuteOptions::new()
        .with_tools(given)
        .with_extension(10_u32);
    let execution = executor
        .execute(&message(&["i#1", "d#2", "z#3"]), options)
        .await
        .unwrap();
    let expected = ["1=10", "2=D", "3=Unknown tool 'z'. Available tools: i, d."];
    assert_eq!(texts(&execution), expected, "the option reaches the tool");
    let none = ExecuteOptions::new().with_tools([]);
    let execution = executor.execute(&message(&["z#1"]), none).await.unwrap();
    assert!(
        execution.results[0].outcome().is_error(),
        "an empty list is none"
    );
    assert_eq!(z.log().entries(), 0);
}

#[tokio::test]
async fn wrong_input_is_a_typed_error() {
    let executor = executor(ExecutionOptions::new(), &[]);
    let wrong = [ChatMessage::user("hi"), ChatMessage::assistant("no calls")];
    for message in wrong {
        let error = executor
            .execute(&message, ExecuteOptions::new())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
    }
}

#[test]
fn without_a_runtime_there_is_a_typed_error() {
    let tool = ScriptedTool::returning("f", "x");
    let executor = executor(ExecutionOptions::new(), &[&tool]);
    let error = executor
        .stream(&message(&["f#1"]), ExecuteOptions::new())
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("tokio"));
}
