//! Code around every tool call: a middleware that times and retries, one that fills in an argument,
//! and an observer.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use raf_core::{ChatClientExt, ChatClientRunOptions, ChatMessage};
use raf_framework::{ChatClientBuilderExt, FunctionInvokingOptions};
use raf_testing::Reply;
use raf_tools::{
    CallbackCall, ExecutionOptions, FunctionTool, IToolCallback, IToolMiddleware, Next,
    PreparingCall, ToolArguments, ToolError, ToolInvocation, ToolOutput, tool_fn,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Runs a tool again that failed, where that does no harm.
#[derive(Debug)]
struct Retry {
    attempts: u32,
}

#[async_trait]
impl IToolMiddleware for Retry {
    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError> {
        let attempts = if next.is_idempotent() {
            self.attempts
        } else {
            1
        };
        let mut result = next.run(call.clone()).await;
        for attempt in 1..attempts {
            let Err(error) = &result else { break };
            println!(
                "attempt {attempt} of {} failed: {error}",
                call.context.tool_name()
            );
            result = next.run(call.clone()).await;
        }
        result
    }
}

/// Fills in the tenant that the caller put into the options: the model neither knows nor sets it.
/// It runs before arguments are validated and before anybody is asked.
#[derive(Debug)]
struct FillInTenant;

struct Tenant(&'static str);

impl IToolMiddleware for FillInTenant {
    fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        let Some(tenant) = call.extensions.get::<Tenant>() else {
            return Err(ToolError::permission_denied("there is no tenant"));
        };
        call.arguments.insert("tenant".into(), json!(tenant.0));
        Ok(())
    }
}

/// Sees each body that is entered.
#[derive(Debug)]
struct Watch;

impl IToolCallback for Watch {
    fn on_start(&self, call: &CallbackCall, arguments: &ToolArguments) {
        let arguments = json!(arguments);
        println!("> {} with {arguments}", call.context.tool_name());
    }

    fn on_end(&self, call: &CallbackCall, _: Option<&ToolOutput>) {
        println!("< {} ended well", call.context.tool_name());
    }

    fn on_error(&self, call: &CallbackCall, error: &ToolError) {
        println!("< {} failed: {error}", call.context.tool_name());
    }
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    number: u32,
    #[schemars(skip)]
    #[serde(default)]
    tenant: String,
}

/// Fails the first time, as services do.
fn order_status() -> FunctionTool {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    tool_fn(
        "order_status",
        "Looks up an order.",
        |order: Order| async move {
            if CALLS.fetch_add(1, Ordering::SeqCst) == 0 {
                return Err(ToolError::execution_failed("the service did not answer"));
            }
            Ok(format!(
                "order {} of {} is on its way",
                order.number, order.tenant
            ))
        },
    )
    .idempotent()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let execution = ExecutionOptions::new()
        .with_middleware(Retry { attempts: 3 })
        .with_middleware_for(|tool| tool.starts_with("order"), FillInTenant)
        .with_callback(Watch);
    let loop_options = FunctionInvokingOptions::new().with_execution(execution);
    let client = raf_examples::provider(script())?
        .into_builder()
        .function_invoking_with([order_status()], loop_options)
        .build()?;
    let question = [ChatMessage::user("Where is my order 7?")];
    let options = ChatClientRunOptions::new().with_extension(Tenant("acme"));
    let response = client.get_response(&question, options).await?;
    println!("{}", response.text());
    Ok(())
}

/// What the scripted endpoint says where there is no model.
fn script() -> [Reply; 2] {
    [
        Reply::calls([("call_1", "order_status", r#"{"number": 7}"#)]),
        Reply::text("Your order 7 is on its way."),
    ]
}
