//! Middleware, callbacks, aliases and handlers.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use raf_core::{Content, MediaContent, ToolDeclaration, ToolErrorClass, ToolOutcome};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{
    CallbackCall, ExecuteOptions, ExecutionOptions, IArgumentHandler, IResultRenderer,
    IToolCallback, IToolMiddleware, Interrupt, KindTool, Next, PreparingCall, RegisteredTool,
    RenderingCall, ToolAliases, ToolArguments, ToolError, ToolInvocation, ToolLimits, ToolOutput,
    UnknownToolPolicy,
};
use serde_json::{Value, json};

use super::{execute, executor, message, texts};

type Log = Arc<Mutex<Vec<String>>>;

fn say(log: &Log, line: impl Into<String>) {
    log.lock()
        .expect("no test panics while it writes")
        .push(line.into());
}

fn said(log: &Log) -> Vec<String> {
    log.lock().expect("no test panics while it writes").clone()
}

/// Writes its name on the way in and out.
#[derive(Debug)]
struct Named(&'static str, Log);

#[async_trait]
impl IToolMiddleware for Named {
    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError> {
        say(&self.1, format!("{}> {}", self.0, call.context.call_id()));
        let output = next.run(call).await;
        say(&self.1, format!("<{}", self.0));
        output
    }
}

/// Writes what it observes.
#[derive(Debug)]
struct Observer(Log);

impl IToolCallback for Observer {
    fn on_start(&self, call: &CallbackCall, arguments: &ToolArguments) {
        let arguments = Value::Object(arguments.clone());
        say(
            &self.0,
            format!("start {} {arguments}", call.context.tool_name()),
        );
    }

    fn on_piece(&self, _: &CallbackCall, piece: &Content) {
        say(
            &self.0,
            format!("piece {}", piece.as_text().unwrap_or("media")),
        );
    }

    fn on_end(&self, _: &CallbackCall, output: Option<&ToolOutput>) {
        say(&self.0, format!("end {}", output.is_some()));
    }

    fn on_error(&self, _: &CallbackCall, error: &ToolError) {
        say(&self.0, format!("error {:?}", error.kind()));
    }

    fn on_interrupt(&self, _: &CallbackCall, interrupt: &Interrupt) {
        say(&self.0, format!("interrupt {}", interrupt.information));
    }
}

/// A middleware from a closure over the invocation.
struct Around<F>(F);

impl<F> std::fmt::Debug for Around<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Around")
    }
}

#[async_trait]
impl<F> IToolMiddleware for Around<F>
where
    F: AsyncAround,
{
    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError> {
        self.0.around(call, next).await
    }
}

#[async_trait]
trait AsyncAround: Send + Sync {
    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError>;
}

fn kinds() -> Vec<RegisteredTool> {
    let declaration = |name: &str| ToolDeclaration::new(name, "");
    let image = || Content::Image(MediaContent::base64("AA==", "image/png"));
    let tools = [
        KindTool::invokable(declaration("i"), |_, _| async { Ok(json!("I")) }).build(),
        KindTool::streamable(declaration("s"), |_, _| async {
            let pieces = ["x", "y", "z"].map(|piece| Ok(piece.to_owned()));
            Ok(futures::stream::iter(pieces))
        })
        .build(),
        KindTool::enhanced_invokable(declaration("ei"), move |_, _| async move {
            Ok(vec![Content::text("E"), image()])
        })
        .build(),
        KindTool::enhanced_streamable(declaration("es"), move |_, _| async move {
            Ok(futures::stream::iter([Ok(image()), Ok(image())]))
        })
        .build(),
    ];
    tools
        .into_iter()
        .map(|tool| RegisteredTool::new(tool).expect("its name is good"))
        .collect()
}

#[tokio::test]
async fn te05_middleware_runs_in_order_once_for_every_kind_whole_and_streamed() {
    for name in ["i", "s", "ei", "es"] {
        let log = Log::default();
        let options = ["A", "B", "C"]
            .into_iter()
            .fold(ExecutionOptions::new(), |options, name| {
                options.with_middleware(Named(name, Arc::clone(&log)))
            });
        let executor = executor(options, &[]);
        let call = format!("{name}#1");
        let options = ExecuteOptions::new().with_tools(kinds());
        let execution = executor.execute(&message(&[&call]), options).await.unwrap();
        assert!(execution.results[0].outcome().is_ok());
        assert_eq!(
            said(&log),
            ["A> 1", "B> 1", "C> 1", "<C", "<B", "<A"],
            "{name}"
        );
    }
}

#[tokio::test]
async fn te02_a_stream_is_joined_and_enhanced_parts_stay() {
    let executor = executor(ExecutionOptions::new(), &[]);
    let options = ExecuteOptions::new().with_tools(kinds());
    let calls = message(&["i#1", "s#2", "ei#3", "es#4"]);
    let execution = executor.execute(&calls, options).await.unwrap();
    assert_eq!(texts(&execution)[..3], ["1=I", "2=xyz", "3=E"]);
    let images = |index: usize| {
        let content: &[Content] = execution.results[index].content();
        content
            .iter()
            .filter(|part| matches!(part, Content::Image(_)))
            .count()
    };
    assert_eq!((images(2), images(3)), (1, 2));
}

#[tokio::test]
async fn te06_arguments_are_rewritten_a_call_is_answered_and_callbacks_see_no_body() {
    #[derive(Debug)]
    struct Rewrites;
    impl IToolMiddleware for Rewrites {
        fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
            call.arguments.insert("q".into(), json!("q2"));
            Ok(())
        }
    }
    struct Answers(Log);
    #[async_trait]
    impl AsyncAround for Answers {
        async fn around(&self, call: ToolInvocation, _: Next<'_>) -> Result<ToolOutput, ToolError> {
            say(&self.0, Value::Object(call.arguments).to_string());
            Ok("stub".into())
        }
    }
    let log = Log::default();
    let tool = ScriptedTool::returning("f", "real");
    let options = ExecutionOptions::new()
        .with_middleware(Rewrites)
        .with_middleware(Around(Answers(Arc::clone(&log))))
        .with_callback(Observer(Arc::clone(&log)));
    let execution = execute(&executor(options, &[&tool]), &["f#1"]).await;
    assert_eq!(texts(&execution), ["1=stub"]);
    assert_eq!(tool.log().entries(), 0);
    assert_eq!(said(&log), [r#"{"q":"q2"}"#]);
    assert_eq!(
        execution.results[0].executed_arguments(),
        Some(&json!({"q": "q2"}))
    );
}

#[tokio::test]
async fn te_callbacks_have_one_start_and_one_end_per_body() {
    let log = Log::default();
    let options = ExecutionOptions::new().with_callback(Observer(Arc::clone(&log)));
    let check = async |tool: ScriptedTool, expect: &[&str]| {
        log.lock().unwrap().clear();
        execute(&executor(options.clone(), &[&tool]), &["f#1"]).await;
        assert_eq!(said(&log), expect);
    };
    let tool = || ScriptedTool::new("f");
    check(
        tool().always(Behaviour::text("x")),
        &["start f {}", "end true"],
    )
    .await;
    let pieces = [Content::text("a"), Content::text("b")];
    check(
        tool().always(Behaviour::pieces(pieces)),
        &["start f {}", "piece a", "piece b", "end false"],
    )
    .await;
    check(
        tool().always(Behaviour::tell_model("no")),
        &["start f {}", "error ExecutionFailed"],
    )
    .await;
    check(
        tool().always(Behaviour::panics("p")),
        &["start f {}", "error ExecutionFailed"],
    )
    .await;
    check(
        tool().always(Behaviour::interrupt(json!("which?"), json!(1))),
        &["start f {}", r#"interrupt "which?""#],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn te_a_body_that_is_dropped_ends_for_its_callbacks_too() {
    let log = Log::default();
    let options = ExecutionOptions::new()
        .with_deadline(std::time::Duration::from_secs(1))
        .with_callback(Observer(Arc::clone(&log)));
    let tool = ScriptedTool::new("f").always(Behaviour::hang());
    execute(&executor(options, &[&tool]), &["f#1"]).await;
    assert_eq!(said(&log), ["start f {}", "error Cancelled"]);
}

#[tokio::test]
async fn d6_a_panicking_callback_harms_nothing_and_a_panicking_middleware_its_own_call() {
    #[derive(Debug)]
    struct Panics;
    impl IToolCallback for Panics {
        fn on_start(&self, _: &CallbackCall, _: &ToolArguments) {
            panic!("callback");
        }
    }
    #[async_trait]
    impl IToolMiddleware for Panics {
        fn applies_to(&self, tool: &str) -> bool {
            tool == "bad"
        }

        async fn around(&self, _: ToolInvocation, _: Next<'_>) -> Result<ToolOutput, ToolError> {
            panic!("middleware");
        }
    }
    let good = ScriptedTool::returning("good", "G");
    let bad = ScriptedTool::returning("bad", "B");
    let options = ExecutionOptions::new()
        .with_callback(Panics)
        .with_middleware(Panics);
    let execution = execute(&executor(options, &[&good, &bad]), &["good#1", "bad#2"]).await;
    assert_eq!(texts(&execution)[0], "1=G");
    let outcome = ToolOutcome::Error(ToolErrorClass::Panicked);
    assert_eq!(execution.results[1].outcome(), outcome);
    assert_eq!(bad.log().entries(), 0);
}

#[tokio::test]
async fn d2_a_middleware_runs_a_body_again_only_if_it_is_idempotent() {
    struct Twice;
    #[async_trait]
    impl AsyncAround for Twice {
        async fn around(
            &self,
            call: ToolInvocation,
            next: Next<'_>,
        ) -> Result<ToolOutput, ToolError> {
            let _ = next.run(call.clone()).await;
            next.run(call).await
        }
    }
    for (idempotent, entries, ok) in [(false, 1, false), (true, 2, true)] {
        let tool = ScriptedTool::returning("f", "x")
            .with_limits(ToolLimits::new().with_idempotent(idempotent));
        let options = ExecutionOptions::new().with_middleware(Around(Twice));
        let execution = execute(&executor(options, &[&tool]), &["f#1"]).await;
        assert_eq!(tool.log().entries(), entries);
        assert_eq!(execution.results[0].outcome().is_ok(), ok);
    }
}

#[tokio::test]
async fn te_arguments_changed_around_a_call_are_validated_again() {
    struct Breaks;
    #[async_trait]
    impl AsyncAround for Breaks {
        async fn around(
            &self,
            mut call: ToolInvocation,
            next: Next<'_>,
        ) -> Result<ToolOutput, ToolError> {
            call.arguments.insert("n".into(), json!("no number"));
            next.run(call).await
        }
    }
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = ScriptedTool::returning("f", "x").with_parameters(&schema);
    let options = ExecutionOptions::new().with_middleware(Around(Breaks));
    let execution = execute(&executor(options, &[&tool]), &["f#1({\"n\":1})"]).await;
    let outcome = ToolOutcome::Error(ToolErrorClass::InvalidArguments);
    assert_eq!(execution.results[0].outcome(), outcome);
    assert_eq!(tool.log().entries(), 0);
}

#[tokio::test]
async fn te_a_middleware_ends_the_run() {
    struct Ends;
    #[async_trait]
    impl AsyncAround for Ends {
        async fn around(&self, _: ToolInvocation, _: Next<'_>) -> Result<ToolOutput, ToolError> {
            Err(ToolError::terminate("enough"))
        }
    }
    let tool = ScriptedTool::returning("f", "x");
    let options = ExecutionOptions::new().with_middleware(Around(Ends));
    let execution = execute(&executor(options, &[&tool]), &["f#1"]).await;
    let cause = raf_core::TerminationCause::Middleware;
    assert_eq!(execution.termination, Some(cause));
    assert_eq!(texts(&execution), ["1=enough"]);
}

#[tokio::test]
async fn te09_aliases_come_before_the_handler_and_other_text_passes_unchanged() {
    #[derive(Debug)]
    struct Appends(Log);
    impl IArgumentHandler for Appends {
        fn rewrite(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
            let seen = Value::Object(call.arguments.clone());
            say(&self.0, format!("{} {seen}", call.tool));
            if let Some(Value::String(query)) = call.arguments.get_mut("query") {
                query.push('*');
            }
            Ok(())
        }
    }
    let schema = json!({
        "type": "object",
        "properties": {"query": {"type": "string"}, "q": {"type": "string"}},
        "required": ["query"],
    });
    let log = Log::default();
    let tool = ScriptedTool::new("search")
        .with_parameters(&schema)
        .always(Behaviour::echo());
    let options = ExecutionOptions::new()
        .with_aliases(
            ToolAliases::new()
                .with_name("search", "find")
                .with_key("search", "query", "q"),
        )
        .with_argument_handler(Appends(Arc::clone(&log)));
    let executor = executor(options, &[&tool]);
    let execution = execute(
        &executor,
        &[
            r#"search#1({"q":"x"})"#,
            r#"find#2({"query":"y","q":"z"})"#,
            "search#3(no json)",
        ],
    )
    .await;
    assert_eq!(
        texts(&execution)[..2],
        [r#"1={"query":"x*"}"#, r#"2={"q":"z","query":"y*"}"#]
    );
    assert_eq!(
        said(&log),
        [r#"search {"query":"x"}"#, r#"search {"q":"z","query":"y"}"#]
    );
    let outcome = ToolOutcome::Error(ToolErrorClass::InvalidArguments);
    assert_eq!(execution.results[2].outcome(), outcome);
}

#[tokio::test]
async fn te15_the_call_id_is_read_in_tool_middleware_and_unknown_handler() {
    let log = Log::default();
    let handler = ScriptedTool::new("handler").always(Behaviour::custom(|context, _| {
        let told = format!("{} {}", context.tool_name(), context.call_id());
        std::future::ready(Ok(told.into()))
    }));
    let options = ExecutionOptions::new()
        .with_unknown_tools(UnknownToolPolicy::Handle(Arc::new(handler)))
        .with_middleware(Named("A", Arc::clone(&log)))
        .with_callback(Observer(Arc::clone(&log)));
    let execution = execute(&executor(options, &[]), &["ghost#7"]).await;
    assert_eq!(texts(&execution), ["7=ghost 7"]);
    assert_eq!(said(&log), ["A> 7", "start ghost {}", "end true", "<A"]);
}

#[tokio::test]
async fn te_middleware_is_around_unknown_tools_without_a_handler() {
    let log = Log::default();
    let options = ExecutionOptions::new()
        .with_middleware(Named("A", Arc::clone(&log)))
        .with_callback(Observer(Arc::clone(&log)));
    let execution = execute(&executor(options, &[]), &["ghost#7"]).await;
    let outcome = ToolOutcome::Error(ToolErrorClass::UnknownTool);
    assert_eq!(execution.results[0].outcome(), outcome);
    assert_eq!(said(&log), ["A> 7", "<A"], "no body, no callback");
}

#[tokio::test]
async fn te_a_renderer_changes_what_the_model_reads_and_its_panic_nothing() {
    #[derive(Debug)]
    struct Shouts;
    impl IResultRenderer for Shouts {
        fn render(&self, call: &RenderingCall<'_>, content: &[Content]) -> Option<Vec<Content>> {
            assert_ne!(call.tool, "bad", "planted");
            let text = content.first()?.as_text()?.to_uppercase();
            Some(vec![Content::text(text)])
        }
    }
    let good = ScriptedTool::returning("good", "g");
    let bad = ScriptedTool::returning("bad", "b");
    let options = ExecutionOptions::new().with_result_renderer(Shouts);
    let execution = execute(&executor(options, &[&good, &bad]), &["good#1", "bad#2"]).await;
    assert_eq!(texts(&execution), ["1=G", "2=b"]);
}
