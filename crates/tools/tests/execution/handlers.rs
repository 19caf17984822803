//! Aliases, the argument handler, the handler of unknown tools, the renderer.

use std::sync::Arc;

use raf_core::{Content, ToolErrorClass, ToolOutcome};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{
    ExecutionOptions, IArgumentHandler, IResultRenderer, PreparingCall, RenderingCall, ToolAliases,
    ToolContext, ToolError, UnknownToolPolicy,
};
use serde_json::{Value, json};

use super::logging::{Log, Named, Observer, said, say};
use super::{execute, executor, texts};

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
    let aliases = ToolAliases::new()
        .with_name("search", "find")
        .with_key("search", "query", "q");
    let options = ExecutionOptions::new()
        .with_aliases(aliases)
        .with_argument_handler(Appends(Arc::clone(&log)));
    let calls = [
        r#"search#1({"q":"x"})"#,
        r#"find#2({"query":"y","q":"z"})"#,
        "search#3(no json)",
    ];
    let execution = execute(&executor(options, &[&tool]), &calls).await;
    let echoed = [r#"1={"query":"x*"}"#, r#"2={"q":"z","query":"y*"}"#];
    assert_eq!(texts(&execution)[..2], echoed);
    let seen = [r#"search {"query":"x"}"#, r#"search {"q":"z","query":"y"}"#];
    assert_eq!(said(&log), seen);
    let outcome = ToolOutcome::Error(ToolErrorClass::InvalidArguments);
    assert_eq!(execution.results[2].outcome(), outcome);
}

#[tokio::test]
async fn te09_an_alias_of_a_tool_that_is_not_visible_is_an_unknown_name() {
    let options =
        ExecutionOptions::new().with_aliases(ToolAliases::new().with_name("search", "find"));
    let other = ScriptedTool::returning("other", "x");
    let execution = execute(&executor(options, &[&other]), &["find#1"]).await;
    let text = "1=Unknown tool 'find'. Available tools: other.";
    assert_eq!(texts(&execution), [text]);
}

/// Fails, or panics, for the tool `bad`.
#[derive(Debug)]
struct Refuses(fn() -> ToolError);

impl IArgumentHandler for Refuses {
    fn rewrite(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        match call.tool {
            "bad" => Err((self.0)()),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn te09_a_handler_that_fails_settles_its_own_call_and_shows_no_arguments() {
    for (error, class, shown) in [
        (
            (|| ToolError::permission_denied("not today")) as fn() -> ToolError,
            ToolErrorClass::PermissionDenied,
            true,
        ),
        (
            || ToolError::invalid_parameters("no such city"),
            ToolErrorClass::InvalidArguments,
            true,
        ),
        (
            || ToolError::execution_failed("the vault is at 10.0.0.1"),
            ToolErrorClass::Failed,
            false,
        ),
        (|| panic!("planted"), ToolErrorClass::Panicked, false),
    ] {
        let good = ScriptedTool::returning("good", "G");
        let bad = ScriptedTool::returning("bad", "B");
        let options = ExecutionOptions::new().with_argument_handler(Refuses(error));
        let calls = [r#"bad#1({"key":"SECRET"})"#, "good#2"];
        let execution = execute(&executor(options, &[&good, &bad]), &calls).await;
        let result = &execution.results[0];
        assert_eq!(result.outcome(), ToolOutcome::Error(class));
        assert!(!result.text().contains("SECRET"));
        assert_eq!(
            result.text().contains("not today") || result.text().contains("no such city"),
            shown
        );
        assert!(!result.text().contains("10.0.0.1"));
        assert_eq!(execution.results[1].text(), "G");
        assert_eq!(bad.log().entries(), 0);
    }
}

#[tokio::test]
async fn te15_the_call_id_is_read_in_tool_middleware_and_unknown_handler() {
    let log = Log::default();
    let told = || {
        Behaviour::custom(|context, _| {
            let told = format!("{} {}", context.tool_name(), context.call_id());
            std::future::ready(Ok(told.into()))
        })
    };
    let handler = ScriptedTool::new("handler").always(told());
    let tool = ScriptedTool::new("f").always(told());
    let options = ExecutionOptions::new()
        .with_mode(raf_tools::ExecutionMode::Sequential)
        .with_unknown_tools(UnknownToolPolicy::Handle(Arc::new(handler)))
        .with_middleware(Named("A", Arc::clone(&log)))
        .with_middleware(Named("B", Arc::clone(&log)))
        .with_callback(Observer(Arc::clone(&log)));
    let execution = execute(&executor(options, &[&tool]), &["ghost#7", "f#8"]).await;
    assert_eq!(texts(&execution), ["7=ghost 7", "8=f 8"]);
    let expected = [
        "A> 7",
        "B> 7",
        "start ghost {}",
        "end true",
        "<B",
        "<A",
        "A> 8",
        "B> 8",
        "start f {}",
        "end true",
        "<B",
        "<A",
    ];
    assert_eq!(said(&log), expected);
    assert_eq!(ToolContext::detached("").call_id(), "", "empty outside");
}

#[tokio::test]
async fn te_a_renderer_changes_what_the_model_reads_and_its_panic_nothing() {
    #[derive(Debug)]
    struct Shouts;
    impl IResultRenderer for Shouts {
        fn render(&self, call: &RenderingCall<'_>, content: &[Content]) -> Option<Vec<Content>> {
            assert_ne!(call.tool, "bad", "planted");
            let text = content.first()?.as_text()?.to_uppercase();
            let text = format!("{} {text}", call.call.id());
            Some(vec![Content::text(text)])
        }
    }
    let good = ScriptedTool::returning("good", "g");
    let bad = ScriptedTool::returning("bad", "b");
    let options = ExecutionOptions::new().with_result_renderer(Shouts);
    let execution = execute(&executor(options, &[&good, &bad]), &["good#1", "bad#2"]).await;
    assert_eq!(texts(&execution), ["1=1 G", "2=b"]);
}
