//! The four kinds of tool through the executor, whole and as a stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use raf_core::{Content, MediaContent, Occurrence, ToolDeclaration, ToolErrorClass, ToolOutcome};
use raf_testing::{Behaviour, Latch, ScriptedTool};
use raf_tools::{
    BatchEvent, ExecuteOptions, Execution, ExecutionMode, ExecutionOptions, ExecutionUpdate,
    KindTool, RegisteredTool, ToolError, ToolExecutor, ToolOutput,
};
use serde_json::json;

use super::{execute, executor, message, texts};

pub(crate) fn image() -> Content {
    Content::Image(MediaContent::base64("AA==", "image/png"))
}

/// A tool of each kind (`i`, `s`, `ei`, `es`), and how often their bodies were run.
pub(crate) fn kinds() -> (Vec<RegisteredTool>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let run = || {
        let runs = Arc::clone(&runs);
        move || {
            runs.fetch_add(1, Ordering::SeqCst);
        }
    };
    let declaration = |name: &str| ToolDeclaration::new(name, "");
    let (i, s, ei, es) = (run(), run(), run(), run());
    let tools = [
        KindTool::invokable(declaration("i"), move |_, _| {
            i();
            async { Ok(json!("xyz")) }
        })
        .build(),
        KindTool::streamable(declaration("s"), move |_, _| {
            s();
            let pieces = ["x", "y", "z"].map(|piece| Ok(piece.to_owned()));
            async { Ok(futures::stream::iter(pieces)) }
        })
        .build(),
        KindTool::enhanced_invokable(declaration("ei"), move |_, _| {
            ei();
            async { Ok(vec![Content::text("E"), image()]) }
        })
        .build(),
        KindTool::enhanced_streamable(declaration("es"), move |_, _| {
            es();
            async { Ok(futures::stream::iter([Ok(image()), Ok(image())])) }
        })
        .build(),
    ];
    let register = |tool| RegisteredTool::new(tool).expect("its name is good");
    (tools.into_iter().map(register).collect(), runs)
}

/// A batch as a stream: the progress text of each call, and the end.
async fn streamed(
    executor: &ToolExecutor,
    calls: &[&str],
    options: ExecuteOptions,
) -> (BTreeMap<Occurrence, String>, Execution) {
    let mut shown = BTreeMap::<Occurrence, String>::new();
    let mut updates = executor.stream(&message(calls), options).expect("calls");
    loop {
        match updates.next().await.expect("an end comes") {
            ExecutionUpdate::Event(BatchEvent::Progress {
                occurrence,
                content,
            }) => *shown.entry(occurrence).or_default() += content.as_text().unwrap_or("(media)"),
            ExecutionUpdate::End(end) => return (shown, *end),
            _ => {}
        }
    }
}

fn parts(execution: &Execution, index: usize) -> &[Content] {
    execution.results[index].content()
}

#[tokio::test]
async fn te02_te03_each_kind_whole_and_as_a_stream_comes_to_the_same_and_runs_once() {
    let executor = executor(ExecutionOptions::new(), &[]);
    let calls = ["i#1", "s#2", "ei#3", "es#4"];
    let (tools, runs) = kinds();
    let options = ExecuteOptions::new().with_tools(tools);
    let whole = executor
        .execute(&message(&calls), options.clone())
        .await
        .unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 4);
    let (shown, end) = streamed(&executor, &calls, options).await;
    assert_eq!(runs.load(Ordering::SeqCst), 8);
    for execution in [&whole, &end] {
        assert_eq!(parts(execution, 0), [Content::text("xyz")]);
        assert_eq!(parts(execution, 1), [Content::text("xyz")]);
        assert_eq!(parts(execution, 2), [Content::text("E"), image()]);
        assert_eq!(parts(execution, 3), [image(), image()], "row 30");
    }
    let at = |position| shown.get(&Occurrence::new(0, position)).cloned();
    assert_eq!(at(0), None, "a whole value is no progress");
    assert_eq!(at(1).unwrap(), "xyz");
    assert_eq!(at(3).unwrap(), "(media)(media)");
}

#[tokio::test]
async fn te30_two_images_in_one_stream_are_two_images() {
    let text = |text: &str| Content::text(text);
    let pieces = [text("a"), image(), image(), text("b"), text("c")];
    let tool = ScriptedTool::new("es").always(Behaviour::pieces(pieces));
    let executor = executor(ExecutionOptions::new(), &[&tool]);
    let whole = execute(&executor, &["es#1"]).await;
    let (_, end) = streamed(&executor, &["es#1"], ExecuteOptions::new()).await;
    for execution in [whole, end] {
        let expected = [text("a"), image(), image(), text("bc")];
        assert_eq!(parts(&execution, 0), expected);
    }
}

#[tokio::test]
async fn te03_a_stream_without_pieces_is_a_legal_result_that_is_not_empty() {
    let tool = ScriptedTool::new("s").always(Behaviour::pieces([]));
    let executor = executor(ExecutionOptions::new(), &[&tool]);
    let whole = execute(&executor, &["s#1"]).await;
    let (shown, end) = streamed(&executor, &["s#1"], ExecuteOptions::new()).await;
    assert!(shown.is_empty());
    for execution in [whole, end] {
        assert_eq!(execution.results[0].outcome(), ToolOutcome::Ok);
        assert!(!execution.results[0].text().is_empty());
    }
}

#[tokio::test]
async fn te04_enhanced_wins_over_plain_in_the_executor_too() {
    let plain = Arc::new(AtomicUsize::new(0));
    let runs = Arc::clone(&plain);
    let declaration = || ToolDeclaration::new("t", "");
    let tool = KindTool::invokable(declaration(), move |_, _| {
        runs.fetch_add(1, Ordering::SeqCst);
        async { Ok(json!("I")) }
    })
    .or(KindTool::enhanced_streamable(declaration(), |_, _| async {
        let pieces = ["E1", "E2"].map(|piece| Ok(Content::text(piece)));
        Ok(futures::stream::iter(pieces))
    }))
    .build();
    let options = ExecuteOptions::new().with_tools([RegisteredTool::new(tool).unwrap()]);
    let executor = executor(ExecutionOptions::new(), &[]);
    let execution = executor.execute(&message(&["t#1"]), options).await.unwrap();
    assert_eq!(parts(&execution, 0), [Content::text("E1E2")]);
    assert_eq!(plain.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn te12_a_panic_of_any_kind_of_tool_settles_its_own_call() {
    fn declaration(name: &str) -> ToolDeclaration {
        ToolDeclaration::new(name, "")
    }
    fn broken<T>() -> Result<T, ToolError> {
        panic!("secret stack")
    }
    let tools = [
        KindTool::invokable(declaration("i"), |_, _| async { broken() }).build(),
        KindTool::streamable(declaration("s"), |_, _| async {
            Ok(futures::stream::iter([0, 1]).map(|index| match index {
                0 => Ok("p".to_owned()),
                _ => broken(),
            }))
        })
        .build(),
        KindTool::enhanced_invokable(declaration("ei"), |_, _| async { broken() }).build(),
        KindTool::enhanced_streamable(declaration("es"), |_, _| async {
            Ok(futures::stream::once(async { broken() }))
        })
        .build(),
        KindTool::invokable(declaration("good"), |_, _| async { Ok(json!("G")) }).build(),
    ]
    .map(|tool| RegisteredTool::new(tool).unwrap());
    for mode in [ExecutionMode::Parallel, ExecutionMode::Sequential] {
        let executor = executor(ExecutionOptions::new().with_mode(mode), &[]);
        for kind in ["i", "s", "ei", "es"] {
            let (bad, good) = (format!("{kind}#bad"), "good#good");
            for calls in [&[&*bad][..], &[&bad, good], &[good, &bad]] {
                let options = ExecuteOptions::new().with_tools(tools.clone());
                let (_, end) = streamed(&executor, calls, options).await;
                assert_eq!(end.results.len(), calls.len());
                for result in &end.results {
                    if result.call_id() == "good" {
                        assert_eq!(result.text(), "G");
                        continue;
                    }
                    let outcome = ToolOutcome::Error(ToolErrorClass::Panicked);
                    assert_eq!(result.outcome(), outcome, "{kind}");
                    assert_eq!((result.name(), result.call_id()), (kind, "bad"));
                    assert!(!result.text().contains("secret"), "{}", result.text());
                }
            }
        }
    }
}

#[tokio::test]
async fn te23_an_error_in_the_middle_of_a_stream_is_its_own_calls_alone() {
    let broken = ScriptedTool::new("s").always(Behaviour::returns(|| {
        let pieces = [Ok(Content::text("p")), Err(ToolError::tell_model("broken"))];
        ToolOutput::stream(futures::stream::iter(pieces))
    }));
    let a = ScriptedTool::new("a").always(Behaviour::pieces(["1", "2", "3"].map(Content::text)));
    let executor = executor(ExecutionOptions::new(), &[&broken, &a]);
    let whole = execute(&executor, &["s#1", "a#2"]).await;
    let (shown, end) = streamed(&executor, &["s#1", "a#2"], ExecuteOptions::new()).await;
    for execution in [&whole, &end] {
        assert_eq!(texts(execution), ["1=broken", "2=123"]);
        assert!(execution.results[0].outcome().is_error());
    }
    assert_eq!(shown[&Occurrence::new(0, 1)], "123");
}

#[tokio::test]
async fn te36_a_piece_is_shown_while_a_sibling_is_at_work() {
    let latch = Latch::new();
    let slow = ScriptedTool::new("slow").always(Behaviour::text("slow").after_latch(&latch));
    let streams = ScriptedTool::new("s").always(Behaviour::pieces([Content::text("x")]));
    let executor = executor(ExecutionOptions::new(), &[&slow, &streams]);
    let mut updates = executor
        .stream(&message(&["slow#1", "s#2"]), ExecuteOptions::new())
        .unwrap();
    loop {
        match updates.next().await.unwrap() {
            ExecutionUpdate::Event(BatchEvent::Progress { content, .. }) => {
                assert_eq!(content.as_text(), Some("x"));
                break;
            }
            ExecutionUpdate::Event(BatchEvent::Started { .. }) => {}
            other => panic!("{other:?} before the first piece"),
        }
    }
    assert_eq!(slow.log().running(), 1, "the sibling is still at work");
    latch.open();
    let last = updates.collect::<Vec<_>>().await.pop();
    let Some(ExecutionUpdate::End(end)) = last else {
        panic!("the end comes last");
    };
    assert_eq!(texts(&end), ["1=slow", "2=x"]);
}

/// `x`, and `y` once the latch is open.
fn held_back(latch: &Latch) -> impl futures::Stream<Item = Result<String, ToolError>> + use<> {
    let latch = latch.clone();
    futures::stream::iter(["x", "y"]).then(move |piece| {
        let latch = latch.clone();
        async move {
            if piece == "y" {
                latch.wait().await;
            }
            Ok(piece.to_owned())
        }
    })
}

#[tokio::test]
async fn te36_each_streamed_kind_shows_its_first_piece_before_its_body_ends() {
    let latch = Latch::new();
    let (plain, parts) = (latch.clone(), latch.clone());
    let streamable = KindTool::streamable(ToolDeclaration::new("s", ""), move |_, _| {
        let pieces = held_back(&plain);
        async move { Ok(pieces) }
    });
    let enhanced = KindTool::enhanced_streamable(ToolDeclaration::new("es", ""), move |_, _| {
        let pieces = held_back(&parts).map(|piece| piece.map(Content::text));
        async move { Ok(pieces) }
    });
    let tools = [streamable.build(), enhanced.build()]
        .map(|tool| RegisteredTool::new(tool).expect("its name is good"));
    let executor = executor(ExecutionOptions::new(), &[]);
    let options = ExecuteOptions::new().with_tools(tools);
    let calls = message(&["s#1", "es#2"]);
    let mut updates = executor.stream(&calls, options).unwrap();
    let mut seen = 0;
    while seen < 2 {
        match updates.next().await.expect("the end is not yet") {
            ExecutionUpdate::Event(BatchEvent::Progress { content, .. }) => {
                assert_eq!(content.as_text(), Some("x"));
                seen += 1;
            }
            ExecutionUpdate::Event(BatchEvent::Started { .. }) => {}
            other => panic!("{other:?} before the first pieces"),
        }
    }
    latch.open();
    let last = updates.collect::<Vec<_>>().await.pop();
    let Some(ExecutionUpdate::End(end)) = last else {
        panic!("the end comes last");
    };
    assert_eq!(texts(&end), ["1=xy", "2=xy"]);
}
