//! A tool whose body is itself an executor: its questions reach the outside through it.

use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    ChatMessage, PausedRun, PendingCall, ToolApprovalResponse, ToolDeclaration, WaitsFor,
};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{
    ExecuteOptions, Execution, ExecutionOptions, ITool, RegisteredTool, ToolArguments, ToolContext,
    ToolError, ToolExecutor, ToolLimits, ToolOutput, ToolRegistry,
};
use serde_json::{Value, json};

use super::logging::{Log, Observer, said};
use super::{execute, message, texts};

/// A tool that makes calls of its own. What is pending within makes it ask; the answer goes to the
/// calls within.
#[derive(Debug)]
struct Nested {
    declaration: ToolDeclaration,
    calls: ChatMessage,
    executor: ToolExecutor,
}

#[async_trait]
impl ITool for Nested {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(&self, context: ToolContext, _: ToolArguments) -> Result<ToolOutput, ToolError> {
        let options = ExecuteOptions::new()
            .with_parent_run_id(context.run_id().clone())
            .with_cancellation(context.cancellation().child());
        let execution = match context.resumption() {
            None => self.executor.execute(&self.calls, options).await,
            Some(resumption) => {
                let paused: PausedRun = serde_json::from_value(resumption.state.clone())
                    .map_err(ToolError::from_error)?;
                let answers: Vec<_> = paused
                    .pending()
                    .iter()
                    .filter_map(PendingCall::request_id)
                    .map(|id| ToolApprovalResponse::resume(id, resumption.data.clone()))
                    .collect();
                self.executor.resume(paused, &answers, options).await
            }
        };
        let execution = execution.map_err(ToolError::from_error)?;
        if let Some(paused) = execution.paused {
            let asked: Vec<Value> = execution.pending.iter().map(information).collect();
            let state = serde_json::to_value(paused).map_err(ToolError::from_error)?;
            let information = json!({"through": self.name(), "asked": asked});
            return Err(ToolError::interrupt(information, state));
        }
        let failed = execution
            .results
            .iter()
            .find(|result| result.outcome().is_error());
        match failed {
            Some(result) => Err(ToolError::tell_model(result.text())),
            None => Ok(texts(&execution).join(" ").into()),
        }
    }

    fn limits(&self) -> ToolLimits {
        ToolLimits::new().with_agent_backed(true)
    }
}

fn information(pending: &PendingCall) -> Value {
    match &pending.waits_for {
        WaitsFor::Data { information, .. } => information.clone(),
        other => panic!("{other:?} within"),
    }
}

fn nested(
    name: &str,
    calls: &[&str],
    options: ExecutionOptions,
    tools: Vec<RegisteredTool>,
) -> RegisteredTool {
    let registry = ToolRegistry::from_tools(tools).expect("names of their own");
    RegisteredTool::new(Nested {
        declaration: ToolDeclaration::new(name, ""),
        calls: message(calls),
        executor: ToolExecutor::with_options(registry, options),
    })
    .expect("its name is good")
}

fn leaf(tool: &ScriptedTool) -> RegisteredTool {
    RegisteredTool::new(tool.clone()).expect("its name is good")
}

/// Asks for data, and answers with them and its own state.
fn asks(name: &str) -> ScriptedTool {
    ScriptedTool::new(name).always(Behaviour::custom(|context, _| {
        std::future::ready(match context.resumption() {
            None => Err(ToolError::interrupt(json!("which?"), json!("kept"))),
            Some(answer) => Ok(format!("{}+{}", answer.state, answer.data).into()),
        })
    }))
}

async fn answer(executor: &ToolExecutor, execution: Execution, data: &[Value]) -> Execution {
    let answers: Vec<_> = execution
        .pending
        .iter()
        .filter_map(PendingCall::request_id)
        .zip(data)
        .map(|(id, data)| ToolApprovalResponse::resume(id, data.clone()))
        .collect();
    // Through its JSON form, as another process would.
    let paused =
        serde_json::to_string(&execution.paused.expect("it waits")).expect("a record serialises");
    let paused = serde_json::from_str(&paused).expect("and back");
    let options = ExecuteOptions::new();
    executor
        .resume(paused, &answers, options)
        .await
        .expect("the answers fit")
}

#[tokio::test]
async fn te20_a_question_two_levels_down_reaches_the_outside_and_its_answer_the_leaf() {
    let log = Log::default();
    let watched = || ExecutionOptions::new().with_callback(Observer(Arc::clone(&log)));
    let (done, ask) = (ScriptedTool::returning("done", "D"), asks("ask"));
    let tools = vec![leaf(&done), leaf(&ask)];
    let middle = nested("middle", &["done#d", "ask#a"], watched(), tools);
    let outer = nested(
        "outer",
        &["middle#m"],
        ExecutionOptions::new(),
        vec![middle],
    );
    let registry = ToolRegistry::from_tools([outer]).unwrap();
    let executor = ToolExecutor::with_options(registry, watched());
    let execution = execute(&executor, &["outer#o"]).await;
    let [pending] = &execution.pending[..] else {
        panic!("one root cause: {:?}", execution.pending);
    };
    let chain = json!({
        "through": "outer",
        "asked": [{"through": "middle", "asked": ["which?"]}],
    });
    assert_eq!(information(pending), chain);
    let mut lines = said(&log);
    lines.retain(|line| !line.contains("done") && !line.starts_with("end"));
    assert_eq!(lines[..2], ["start outer {}", "start ask {}"]);
    assert_eq!(lines.len(), 4, "one start and one end each: {lines:?}");

    let execution = answer(&executor, execution, &[json!("DATA")]).await;
    let result = r#"o=m=d=D a="kept"+"DATA""#;
    assert_eq!(texts(&execution), [result]);
    assert_eq!((done.log().entries(), ask.log().entries()), (1, 2));
    let last = ask.log().calls()[1].clone();
    assert_eq!(last.attempt, 2);
    let lines = said(&log);
    let expected = ["start outer {}", "start ask {}", "end true", "end true"];
    assert_eq!(lines, expected, "what had finished is not observed again");
}

#[tokio::test]
async fn te20_an_ordinary_failure_within_is_an_ordinary_failure() {
    let fails = ScriptedTool::new("fails").always(Behaviour::tell_model("no such city"));
    let outer = nested(
        "outer",
        &["fails#f"],
        ExecutionOptions::new(),
        vec![leaf(&fails)],
    );
    let executor = ToolExecutor::new(ToolRegistry::from_tools([outer]).unwrap());
    let execution = execute(&executor, &["outer#o"]).await;
    assert!(execution.pending.is_empty());
    assert_eq!(texts(&execution), ["o=no such city"]);
}

#[tokio::test]
async fn te_w11_two_that_wait_in_parallel_are_resumed_together_each_with_its_own() {
    let done = ScriptedTool::returning("done", "D");
    let (one, two) = (asks("one"), asks("two"));
    let calls = |ask: &ScriptedTool, name: &str| {
        let inner = format!("{}#a", ITool::name(ask));
        let tools = vec![leaf(&done), leaf(ask)];
        nested(name, &["done#d", &inner], ExecutionOptions::new(), tools)
    };
    let registry = ToolRegistry::from_tools([calls(&one, "left"), calls(&two, "right")]).unwrap();
    let executor = ToolExecutor::new(registry);
    let execution = execute(&executor, &["left#l", "right#r"]).await;
    assert_eq!(execution.pending.len(), 2);
    assert_eq!(done.log().entries(), 2);
    let execution = answer(&executor, execution, &[json!(1), json!(2)]).await;
    let expected = [r#"l=d=D a="kept"+1"#, r#"r=d=D a="kept"+2"#];
    assert_eq!(texts(&execution), expected);
    assert_eq!(
        done.log().entries(),
        2,
        "what had finished is not run again"
    );
}
