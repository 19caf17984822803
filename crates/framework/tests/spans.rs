//! The spans of a run (contract J1): one per run, per model request, per tool call, rightly nested for
//! parallel work, with no contents.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raf_core::{ChatClientExt, ChatClientRunOptions, ChatMessage};
use raf_framework::{AgentRuntime, FunctionInvokingChatClient};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{ToolLimits, ToolRegistry};
use tokio::sync::Barrier;
use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    parent: Option<u64>,
    fields: HashMap<String, String>,
    /// The spans that were current inside it when an event was made.
    events: Vec<String>,
}

#[derive(Clone, Default)]
struct Spans(Arc<Mutex<HashMap<u64, Seen>>>);

impl Spans {
    fn change(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(spans.entry(id.into_u64()).or_default());
    }

    fn named(&self, name: &str) -> Vec<(u64, Seen)> {
        let spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named: Vec<_> = spans
            .iter()
            .filter(|(_, span)| span.name == name)
            .map(|(id, span)| (*id, span.clone()))
            .collect();
        named.sort_by_key(|(id, _)| *id);
        named
    }
}

struct Fields<'a>(&'a mut HashMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context
            .span(id)
            .and_then(|span| span.parent().map(|parent| parent.id().into_u64()));
        self.change(id, |span| {
            span.name = attributes.metadata().name();
            span.parent = parent;
            attributes.record(&mut Fields(&mut span.fields));
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |span| values.record(&mut Fields(&mut span.fields)));
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        if let Some(span) = context.event_span(event) {
            let target = event.metadata().target().to_owned();
            self.change(&span.id(), |span| span.events.push(target));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn j1_one_span_per_run_request_and_call_rightly_nested() {
    let barrier = Arc::new(Barrier::new(2));
    let inside = |barrier: &Arc<Barrier>| {
        let barrier = Arc::clone(barrier);
        Behaviour::custom(move |_, _| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                tracing::info!(target: "body", "inside");
                Ok("secret result".into())
            }
        })
    };
    let tools = ToolRegistry::builder()
        .with_tool(ScriptedTool::new("a").always(inside(&barrier)))
        .with_tool(ScriptedTool::new("b").always(inside(&barrier)))
        .build()
        .expect("two names");
    let model = ScriptedChatClient::new([
        Reply::calls([("1", "a", r#"{"x":"secret argument"}"#), ("2", "b", "{}")]).usage(100, 10),
        Reply::text("secret answer").usage(150, 20),
    ]);
    let client = FunctionInvokingChatClient::new(Arc::new(model), tools);
    let spans = Spans::default();
    let subscriber = Registry::default().with(spans.clone());
    let messages = [ChatMessage::user("secret question")];
    client
        .get_response(&messages, ChatClientRunOptions::new().with_model("m"))
        .with_subscriber(subscriber)
        .await
        .expect("an answer");

    let runs = spans.named("invoke_agent");
    assert_eq!(runs.len(), 1);
    let run = runs[0].0;
    let requests = spans.named("chat");
    assert_eq!(requests.len(), 2);
    for (_, request) in &requests {
        assert_eq!(request.parent, Some(run));
        assert_eq!(request.fields["otel.name"], "\"chat m\"");
        assert_eq!(request.fields["gen_ai.request.model"], "\"m\"");
    }
    assert_eq!(requests[0].1.fields["gen_ai.usage.input_tokens"], "100");
    assert_eq!(requests[1].1.fields["gen_ai.usage.output_tokens"], "20");
    let reasons = |request: usize| -> Vec<String> {
        let text = &requests[request].1.fields["gen_ai.response.finish_reasons"];
        let text: String = serde_json::from_str(text).expect("a text");
        serde_json::from_str(&text).expect("a list")
    };
    assert_eq!(reasons(0), ["tool_calls"]);
    assert_eq!(reasons(1), ["stop"]);
    let calls = spans.named("execute_tool");
    let mut names: Vec<_> = calls
        .iter()
        .map(|(_, call)| call.fields["gen_ai.tool.name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["\"a\"", "\"b\""]);
    for (_, call) in &calls {
        assert_eq!(call.parent, Some(run), "a sibling is no parent");
        assert_eq!(call.events, ["body"], "what a body logs is in its own span");
        assert_eq!(call.fields["raf.tool.outcome"], "\"ok\"");
        assert!(!call.fields.contains_key("error.type"));
    }
    let everything = format!(
        "{:?}",
        spans.0.lock().unwrap_or_else(PoisonError::into_inner)
    );
    assert!(!everything.contains("secret"), "no contents: {everything}");
}

#[tokio::test(start_paused = true)]
async fn j1_a_call_tells_its_outcome_when_it_ends() {
    let late = ToolLimits::new().with_deadline(Duration::from_secs(1));
    let tools = ToolRegistry::builder()
        .with_tool(ScriptedTool::new("fails").always(Behaviour::execution_failed("secret reason")))
        .with_tool(
            ScriptedTool::new("late")
                .with_limits(late)
                .always(Behaviour::hang()),
        )
        .build()
        .expect("two names");
    let model = ScriptedChatClient::new([
        Reply::calls([("1", "fails", "{}"), ("2", "late", "{}")]),
        Reply::text("done"),
    ]);
    let client = FunctionInvokingChatClient::new(Arc::new(model), tools);
    let spans = Spans::default();
    client
        .get_response(&[ChatMessage::user("go")], ChatClientRunOptions::new())
        .with_subscriber(Registry::default().with(spans.clone()))
        .await
        .expect("an answer");
    let calls = spans.named("execute_tool");
    let mut ends: Vec<_> = calls
        .iter()
        .map(|(_, call)| {
            let field = |name: &str| call.fields[name].as_str();
            assert_eq!(field("raf.tool.outcome"), "\"error\"");
            (field("gen_ai.tool.name"), field("error.type"))
        })
        .collect();
    ends.sort_unstable();
    let expected = [("\"fails\"", "\"failed\""), ("\"late\"", "\"timed_out\"")];
    assert_eq!(ends, expected);
    assert!(!format!("{calls:?}").contains("secret"));
}

#[tokio::test]
async fn j1_the_run_of_an_agent_that_is_a_tool_is_within_its_call() {
    let inner = ScriptedChatClient::new([Reply::text("secret answer")]);
    let inner = AgentRuntime::builder(inner)
        .name("inner")
        .description("Does it.")
        .build()
        .expect("it has all it needs");
    let outer = ScriptedChatClient::new([
        Reply::calls([("1", "inner", r#"{"task":"secret task"}"#)]),
        Reply::text("done"),
    ]);
    let outer = AgentRuntime::builder(outer)
        .tools([inner.as_tool().expect("it has a name")])
        .build()
        .expect("it has all it needs");
    let spans = Spans::default();
    let subscriber = Registry::default().with(spans.clone());
    let asked = outer.ask("secret question").with_subscriber(subscriber);
    asked.await.expect("an answer");

    let runs = spans.named("invoke_agent");
    let calls = spans.named("execute_tool");
    assert_eq!((runs.len(), calls.len()), (2, 1));
    let (run, nested) = (&runs[0], &runs[1]);
    assert_eq!(calls[0].1.parent, Some(run.0));
    assert_eq!(nested.1.parent, Some(calls[0].0));
    let unquoted = |span: &Seen, field: &str| span.fields[field].trim_matches('"').to_owned();
    assert_eq!(
        unquoted(&nested.1, "raf.run.parent_id"),
        unquoted(&run.1, "raf.run.id")
    );
    let requests = spans.named("chat");
    let of_nested = requests
        .iter()
        .filter(|(_, request)| request.parent == Some(nested.0));
    assert_eq!((requests.len(), of_nested.count()), (3, 1));
    let everything = format!(
        "{:?}",
        spans.0.lock().unwrap_or_else(PoisonError::into_inner)
    );
    assert!(!everything.contains("secret"), "no contents: {everything}");
}
