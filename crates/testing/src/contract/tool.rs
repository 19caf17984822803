//! Laws of a tool: it says truly what it takes, and its body sees nothing else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    ChatMessage, ToolCall, ToolDeclaration, ToolErrorClass, ToolOutcome, ToolResult, TrustLabel,
};
use raf_tools::{
    CompiledSchema, ExecuteOptions, ITool, ToolArguments, ToolContext, ToolError, ToolExecutor,
    ToolLimits, ToolOutput, ToolRegistry, call_stream, call_whole,
};
use serde_json::Value;

use super::assert_no_task_is_left;
use crate::poll_n;

/// A tool under test: how it is made, and arguments that fit it and do not.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The name of the implementing type.
    pub name: &'static str,
    /// Makes the tool.
    pub make: fn() -> Arc<dyn ITool>,
    /// Arguments that it takes and succeeds with.
    pub valid: fn() -> Value,
    /// JSON that it must not take.
    pub invalid: fn() -> Value,
}

/// Every provider takes the name: 1 to 64 of `a-z A-Z 0-9 _ -`; and it is the declaration's.
pub async fn the_name_is_valid(subject: &Subject) {
    let tool = (subject.make)();
    assert!(
        raf_tools::name::is_valid(tool.name()),
        "no provider takes '{}'",
        tool.name()
    );
    assert_eq!(tool.name(), tool.declaration().name());
}

/// The declaration is the same each time, so that prompt caches hold.
pub async fn the_declaration_is_stable(subject: &Subject) {
    let tool = (subject.make)();
    assert_eq!(tool.declaration(), tool.declaration());
    assert_eq!(tool.declaration(), (subject.make)().declaration());
}

/// The schema is one of a JSON object, and compiles.
pub async fn the_schema_is_a_valid_object_schema(subject: &Subject) {
    let tool = (subject.make)();
    let schema = tool.declaration().parameters();
    assert_eq!(
        schema.get("type"),
        Some(&"object".into()),
        "not of an object: {schema}"
    );
    CompiledSchema::compile(tool.declaration()).expect("the schema is valid");
}

/// The example passes the schema, the counter-example does not.
pub async fn the_schema_tells_valid_from_invalid(subject: &Subject) {
    let tool = (subject.make)();
    let schema = CompiledSchema::compile(tool.declaration()).expect("the schema is valid");
    assert_eq!(schema.faults(&(subject.valid)()), []);
    assert_ne!(schema.faults(&(subject.invalid)()), []);
}

/// A call with the example's arguments succeeds, enters the body once, and the model reads
/// something.
pub async fn the_call_works_whole(subject: &Subject) {
    let (result, entries) = execute(subject, &(subject.valid)().to_string(), true).await;
    let result = result.expect("the call has a result");
    assert_eq!(result.outcome(), ToolOutcome::Ok, "{}", result.text());
    assert!(!result.content().is_empty(), "the result is empty");
    assert_eq!(entries, 1);
}

/// Called whole and as a stream, it comes to the same, and each call enters the body once. A stream
/// without pieces is a legal result that the model reads as something.
pub async fn whole_and_streamed_come_to_the_same(subject: &Subject) {
    let entries = Arc::new(AtomicUsize::new(0));
    let tool = || Counted {
        inner: (subject.make)(),
        entries: Arc::clone(&entries),
        without_gate: true,
    };
    let arguments = || (subject.valid)().as_object().cloned().unwrap_or_default();
    let context = || ToolContext::detached("c1");
    let whole = call_whole(&tool(), context(), arguments()).await;
    let whole = whole.expect("the call works whole");
    let streamed = call_stream(&tool(), context(), arguments()).await;
    let pieces: Vec<_> = streamed.collect().await;
    assert_eq!(entries.load(Ordering::SeqCst), 2, "once per call");
    let replay = ToolOutput::stream(futures::stream::iter(pieces));
    let joined = call_whole(&Replay::new(replay), context(), arguments()).await;
    let joined = joined.expect("the call works as a stream");
    assert_eq!(whole, joined, "whole, and the pieces joined");
    let (result, _) = execute(subject, &(subject.valid)().to_string(), true).await;
    let result = result.expect("the call has a result");
    assert!(!result.content().is_empty(), "the result is empty");
}

/// Arguments that are no object or fail the schema are answered without entering the body.
pub async fn bad_arguments_never_reach_the_body(subject: &Subject) {
    let invalid = (subject.invalid)().to_string();
    for arguments in [&invalid, "[]", "7", "\"text\"", "{not json", "{\"a\": "] {
        let (result, entries) = execute(subject, arguments, true).await;
        let result = result.expect("a call with bad arguments has a result");
        let expected = ToolOutcome::Error(ToolErrorClass::InvalidArguments);
        assert_eq!(result.outcome(), expected, "for {arguments}");
        assert_eq!(entries, 0, "the body was entered with {arguments}");
    }
}

/// A gated tool's body is not entered before somebody says yes.
pub async fn an_approval_holds_the_body_back(subject: &Subject) {
    if !(subject.make)().requires_approval() {
        return;
    }
    let (result, entries) = execute(subject, &(subject.valid)().to_string(), false).await;
    assert_eq!(entries, 0, "the body was entered without a yes");
    let is_ok = result.is_some_and(|result| result.outcome().is_ok());
    assert!(!is_ok, "the call has a result without a yes");
}

/// Dropping a call at any point leaves no task behind.
pub async fn dropping_the_call_leaves_nothing_running(subject: &Subject) {
    for polls in 0..20 {
        let tool = (subject.make)();
        let arguments = (subject.valid)().as_object().cloned().unwrap_or_default();
        let call = async move {
            let output = tool.call(ToolContext::detached("c1"), arguments).await;
            if let Ok(ToolOutput::Stream(mut pieces)) = output {
                while pieces.next().await.is_some() {}
            }
        };
        let mut call = futures::stream::once(Box::pin(call));
        let run = tokio::select! {
            biased;
            () = tokio::time::sleep(Duration::from_secs(1)) => None,
            run = poll_n(&mut call, polls) => Some(run),
        };
        drop(call);
        assert_no_task_is_left().await;
        if run.is_none_or(|run| run.ended) {
            return;
        }
    }
}

/// Runs one call as the loop does: its result, if it has one yet, and how often the body was
/// entered.
async fn execute(
    subject: &Subject,
    arguments: &str,
    without_gate: bool,
) -> (Option<ToolResult>, usize) {
    let entries = Arc::new(AtomicUsize::new(0));
    let tool = Counted {
        inner: (subject.make)(),
        entries: Arc::clone(&entries),
        without_gate,
    };
    let name = tool.name().to_owned();
    let mut registry = ToolRegistry::new();
    registry.register(tool).expect("the tool can be registered");
    let message = ChatMessage::assistant_calls([ToolCall::new("c1", name, arguments)]);
    let executor = ToolExecutor::new(registry);
    let execution = executor.execute(&message, ExecuteOptions::new()).await;
    let mut results = execution.expect("the message holds a call").results;
    (results.pop(), entries.load(Ordering::SeqCst))
}

/// Returns what it was given, once.
#[derive(Debug)]
struct Replay(ToolDeclaration, Mutex<Option<ToolOutput>>);

impl Replay {
    fn new(output: ToolOutput) -> Self {
        Self(ToolDeclaration::new("replay", ""), Mutex::new(Some(output)))
    }
}

#[async_trait]
impl ITool for Replay {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    async fn call(&self, _: ToolContext, _: ToolArguments) -> Result<ToolOutput, ToolError> {
        let mut output = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(output.take().unwrap_or(ToolOutput::Void))
    }
}

/// Counts the entries of a tool's body.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn ITool>,
    entries: Arc<AtomicUsize>,
    without_gate: bool,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ITool for Counted {
    fn declaration(&self) -> &ToolDeclaration {
        self.inner.declaration()
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        self.entries.fetch_add(1, Ordering::SeqCst);
        self.inner.call(context, arguments).await
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn requires_approval(&self) -> bool {
        self.inner.requires_approval() && !self.without_gate
    }

    fn limits(&self) -> ToolLimits {
        self.inner.limits()
    }

    fn trust(&self) -> TrustLabel {
        self.inner.trust()
    }
}

/// Makes a module of tests that a tool holds its contract, one per law.
///
/// Names the module, the implementing type, how the tool is made, arguments that fit it and JSON
/// that does not; `skip` leaves laws out with a reason. See [`contract`](crate::contract).
///
/// ```
/// use raf_testing::EchoTool;
/// use serde_json::json;
///
/// raf_testing::tool_contract!(
///     echo: EchoTool, EchoTool::new,
///     valid: json!({"text": "hi"}), invalid: json!({"text": 1})
/// );
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! tool_contract {
    (
        $module:ident : $type:ident, $make:expr, valid: $valid:expr, invalid: $invalid:expr
        $(, skip: { $($law:ident => $reason:literal),* $(,)? })? $(,)?
    ) => {
        mod $module {
            #[allow(unused_imports, reason = "what the expressions name is not known here")]
            use super::*;

            const SUBJECT: $crate::contract::tool::Subject = $crate::contract::tool::Subject {
                name: stringify!($type),
                make: || ::std::sync::Arc::new(($make)()),
                valid: || $valid,
                invalid: || $invalid,
            };
            const SKIPPED: &[(&str, &str)] = &[$($((stringify!($law), $reason)),*)?];

            $crate::__contract_laws!(tool, run_real, SUBJECT, SKIPPED, [
                the_name_is_valid
                the_declaration_is_stable
                the_schema_is_a_valid_object_schema
                the_schema_tells_valid_from_invalid
                the_call_works_whole
                whole_and_streamed_come_to_the_same
                bad_arguments_never_reach_the_body
                an_approval_holds_the_body_back
                dropping_the_call_leaves_nothing_running
            ]);
        }
    };
}
