//! Whole runs: logging, function invocation and whatever else, over a model without a network.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::future::join_all;
use raf_core::{
    ChatClientBuilder, ChatClientRunOptions, ChatMessage, IChatClient, IRunStore, ToolDeclaration,
};
use raf_framework::{ChatClientBuilderExt, FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_tools::{ToolOutput, ToolRegistry, dynamic_tool};
use serde_json::json;

use crate::pieces::{history, request_client};
use crate::replay::Replay;

/// How large a run is. The default: 4 rounds of 2 calls, 4 tools, one layer, an empty history.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    rounds: u32,
    calls: u32,
    deltas: u32,
    history: u32,
    layers: u32,
    tools: u32,
    at_once: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            rounds: 4,
            calls: 2,
            deltas: 10,
            history: 0,
            layers: 1,
            tools: 4,
            at_once: 1,
        }
    }
}

macro_rules! setters {
    ($($name:ident: $what:literal,)*) => {$(
        #[doc = $what]
        #[must_use]
        pub fn $name(mut self, size: u32) -> Self {
            self.$name = size;
            self
        }
    )*};
}

impl Shape {
    setters! {
        rounds: "How many requests a run makes.",
        calls: "How many calls each reply but the last asks for.",
        deltas: "How many deltas the last reply has.",
        history: "How many messages come before the run.",
        layers: "How many layers there are under the loop.",
        tools: "How many tools are offered.",
        at_once: "How many runs go on at once.",
    }
}

/// So many tools, each with a schema of two properties.
pub fn lookup_tools(count: u32) -> ToolRegistry {
    let schema = json!({
        "type": "object",
        "properties": {
            "key": {"type": "string", "description": "What to look up."},
            "limit": {"type": "integer", "minimum": 0},
        },
        "required": ["key", "limit"],
        "additionalProperties": false,
    });
    let mut registry = ToolRegistry::builder();
    for number in 0..count {
        let declaration = ToolDeclaration::new(format!("lookup_{number}"), "Looks something up.")
            .with_parameters(&schema);
        registry = registry.with_tool(dynamic_tool(declaration, |_, arguments| async move {
            let key = arguments["key"].as_str().unwrap_or_default().to_owned();
            Ok::<_, std::convert::Infallible>(ToolOutput::text(format!("The value of {key}.")))
        }));
    }
    registry.build().expect("tools of different names")
}

/// The same, made once for each count.
fn kept_tools(count: u32) -> ToolRegistry {
    static KEPT: Mutex<BTreeMap<u32, ToolRegistry>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock().expect("nothing panics in between");
    kept.entry(count)
        .or_insert_with(|| lookup_tools(count))
        .clone()
}

/// The stack of a shape. Runs are in the store if there is one.
pub fn stack(shape: &Shape, store: Option<Arc<dyn IRunStore>>) -> Arc<dyn IChatClient> {
    let replay = Replay {
        writer: request_client(),
        rounds: shape.rounds,
        calls: shape.calls,
        deltas: shape.deltas,
        before: shape.history as usize + 1,
    };
    let mut execution = FunctionInvokingOptions::new().with_max_rounds(shape.rounds + 1);
    if let Some(store) = store {
        execution = execution.with_run_store(store);
    }
    let mut builder =
        ChatClientBuilder::new(replay)
            .logging()
            .layer(FunctionInvokingChatClient::layer(
                kept_tools(shape.tools),
                execution,
            ));
    for _ in 0..shape.layers {
        builder = builder.logging();
    }
    builder.build().expect("an order that can work")
}

/// Makes the stack, and runs the shape on a runtime of one thread.
pub fn run(shape: &Shape) {
    run_in(shape, None);
}

/// The same, with its runs in a store.
pub(crate) fn run_in(shape: &Shape, store: Option<Arc<dyn IRunStore>>) {
    let stack = stack(shape, store);
    let mut messages = history(shape.history);
    messages.push(ChatMessage::user("Go."));
    let one = || async {
        let updates = stack.run(&messages, ChatClientRunOptions::new()).await;
        let mut updates = updates.expect("a request that is right");
        while let Some(update) = updates.next().await {
            update.expect("a run that ends well");
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runs = join_all((0..shape.at_once).map(|_| one()));
    runtime.expect("a runtime").block_on(runs);
}
