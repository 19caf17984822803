//! What a file says of the loop and of a run, as their options.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{ChatClientRunOptions, IRunStore, ToolChoice};
use raf_framework::{FunctionInvokingOptions, NewMessagePolicy, PolicyDecision, policy_fn};
use raf_tools::{
    CallbackCall, ErrorPolicy, ExecutionMode, ExecutionOptions, IArgumentHandler, IToolCallback,
    IToolMiddleware, Interrupt, Next, PreparingCall, ToolAliases, ToolArguments, ToolError,
    ToolInvocation, ToolOutput, UnknownToolPolicy,
};
use serde_json::Value;

use super::body::{Outside, filled, tool_error};
use crate::format::{
    self, Choice, Config, Errors, Limit, Middleware, NewMessage, Ordered, PolicyRule, PolicyWord,
    RunOptions, UnknownTools,
};

fn milliseconds(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// The options of the loop.
pub(crate) fn loop_options(
    config: &Config,
    store: Arc<dyn IRunStore>,
    outside: &Outside,
) -> FunctionInvokingOptions {
    let mut options = FunctionInvokingOptions::new()
        .with_run_store(store)
        .with_execution(execution_options(config, outside))
        .with_max_invalid_calls_per_tool(config.max_invalid_calls_per_tool)
        .with_max_unknown_calls_per_tool(config.max_unknown_calls_per_tool)
        .with_max_failed_calls_per_tool(config.max_failed_calls_per_tool)
        .with_max_calls(config.max_calls)
        .with_max_calls_per_turn(config.max_calls_per_turn)
        .with_max_calls_per_tool(config.max_calls_per_tool)
        .with_max_wall_time(config.max_wall_time_ms.map(milliseconds))
        .with_wrap_up(config.wrap_up.unwrap_or_default())
        .with_nudge_empty(config.nudge_empty.unwrap_or_default())
        .with_keep_forcing(config.keep_forcing.unwrap_or_default())
        .with_hold_whole_batch(config.hold_whole_batch.unwrap_or_default());
    if let Some(rounds) = config.max_rounds {
        options = options.with_max_rounds(rounds);
    }
    if let Some(Limit(rounds)) = config.max_failed_rounds {
        options = options.with_max_failed_rounds(rounds);
    }
    if let Some(rounds) = config.no_progress_rounds {
        options = options.with_no_progress_rounds(rounds);
    }
    if config.new_message == Some(NewMessage::Reject) {
        options = options.with_new_message_policy(NewMessagePolicy::Reject);
    }
    if !config.policy.is_empty() {
        let rules = config.policy.clone();
        options = options.with_approval_policy(policy_fn(move |call| {
            decide(&rules, call.tool, call.arguments)
        }));
    }
    options
}

fn decide(rules: &[PolicyRule], tool: &str, arguments: &ToolArguments) -> PolicyDecision {
    let fits = |rule: &&PolicyRule| {
        rule.tool.as_ref().is_none_or(|own| own == tool)
            && rule.arguments.iter().all(|(name, values)| {
                arguments
                    .get(name)
                    .is_some_and(|value| values.contains(value))
            })
    };
    match rules.iter().find(fits).map(|rule| rule.decides) {
        None => PolicyDecision::Inherit,
        Some(PolicyWord::Allow) => PolicyDecision::Allow,
        Some(PolicyWord::Ask) => PolicyDecision::Ask { reason: None },
        Some(PolicyWord::Deny) => PolicyDecision::Deny { reason: None },
    }
}

/// The options of the executor.
pub(crate) fn execution_options(config: &Config, outside: &Outside) -> ExecutionOptions {
    let mut options =
        ExecutionOptions::new().with_detailed_errors(config.detailed_errors.unwrap_or_default());
    if config.mode == Some(format::ExecutionMode::Sequential) {
        options = options.with_mode(ExecutionMode::Sequential);
    }
    if let Some(bodies) = config.max_concurrency {
        options = options.with_max_concurrency(bodies);
    }
    if let Some(deadline) = config.deadline_ms {
        options = options.with_deadline(milliseconds(deadline));
    }
    if let Some(grace) = config.grace_ms {
        options = options.with_grace(milliseconds(grace));
    }
    if let Some(bytes) = config.max_result_bytes {
        options = options.with_max_result_bytes(bytes);
    }
    if config.errors == Some(Errors::FailFast) {
        options = options.with_error_policy(ErrorPolicy::FailFast);
    }
    if config.unknown_tools == Some(UnknownTools::Stop) {
        options = options.with_unknown_tools(UnknownToolPolicy::Stop);
    }
    for middleware in &config.middleware {
        options = options.with_middleware(TracingMiddleware {
            middleware: middleware.clone(),
            outside: outside.clone(),
        });
    }
    if config.callbacks {
        options = options.with_callback(TracingCallback(outside.clone()));
    }
    let mut aliases = ToolAliases::new();
    for (alias, tool) in config.aliases.iter() {
        aliases = aliases.with_name(tool, alias);
    }
    for (tool, keys) in config.argument_aliases.iter() {
        for (alias, key) in keys.iter() {
            aliases = aliases.with_key(tool, key, alias);
        }
    }
    options = options.with_aliases(aliases);
    if !config.argument_handler.is_empty() {
        options = options.with_argument_handler(Handler {
            rewrites: config.argument_handler.clone(),
            outside: outside.clone(),
        });
    }
    options
}

/// What a caller says of a run.
pub(crate) fn run_options(options: &RunOptions) -> ChatClientRunOptions {
    let mut run = ChatClientRunOptions::new();
    run.tool_choice = options
        .tool_choice
        .as_ref()
        .and_then(|choice| match choice {
            Choice::Unset | Choice::Forced => None,
            Choice::Auto => Some(ToolChoice::Auto),
            Choice::None => Some(ToolChoice::None),
            Choice::Required => Some(ToolChoice::Required),
            Choice::Tool(name) => Some(ToolChoice::Named(name.clone())),
        });
    run.max_output_tokens = options.max_output_tokens;
    run.model.clone_from(&options.model);
    run.session_id.clone_from(&options.session);
    run.deadline = options.deadline_ms.map(milliseconds);
    run
}

#[derive(Debug)]
struct TracingMiddleware {
    middleware: Middleware,
    outside: Outside,
}

fn set(arguments: &mut ToolArguments, values: &Ordered<Value>) {
    let before = arguments.clone();
    for (name, value) in values.iter() {
        let value = match value {
            Value::String(text) => Value::String(filled(text, &before)),
            other => other.clone(),
        };
        arguments.insert(name.to_owned(), value);
    }
}

#[async_trait]
impl IToolMiddleware for TracingMiddleware {
    fn applies_to(&self, tool: &str) -> bool {
        let tools = self.middleware.tools.as_ref();
        tools.is_none_or(|tools| tools.iter().any(|own| own == tool))
    }

    fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        set(&mut call.arguments, &self.middleware.prepares);
        Ok(())
    }

    async fn around(
        &self,
        mut invocation: ToolInvocation,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let name = &self.middleware.name;
        let mut call = String::new();
        if self.middleware.traces_call {
            call = format!(" {}", invocation.context.call_id());
        }
        self.outside.trace(format!("{name}>{call}"));
        let result = if let Some(failure) = &self.middleware.fails {
            Err(tool_error(failure))
        } else if let Some(text) = &self.middleware.returns {
            Ok(ToolOutput::Text(text.clone()))
        } else {
            set(&mut invocation.arguments, &self.middleware.sets);
            next.run(invocation).await
        };
        self.outside.trace(format!("<{name}{call}"));
        result
    }
}

#[derive(Debug)]
struct TracingCallback(Outside);

impl TracingCallback {
    fn trace(&self, what: &str, call: &CallbackCall) {
        let id = call.context.call_id();
        self.0.trace(format!("{what} {id}"));
    }
}

impl IToolCallback for TracingCallback {
    fn on_start(&self, call: &CallbackCall, _: &ToolArguments) {
        self.trace("start", call);
    }

    fn on_piece(&self, call: &CallbackCall, _: &raf_core::Content) {
        self.trace("piece", call);
    }

    fn on_end(&self, call: &CallbackCall, _: Option<&ToolOutput>) {
        self.trace("end", call);
    }

    fn on_error(&self, call: &CallbackCall, _: &ToolError) {
        self.trace("error", call);
    }

    fn on_interrupt(&self, call: &CallbackCall, _: &Interrupt) {
        self.trace("interrupt", call);
    }
}

#[derive(Debug)]
struct Handler {
    rewrites: Ordered<Ordered<Value>>,
    outside: Outside,
}

impl IArgumentHandler for Handler {
    fn rewrite(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        let seen = Value::Object(call.arguments.clone());
        self.outside.trace(format!("handler {} {seen}", call.tool));
        if let Some(values) = self.rewrites.get(call.tool) {
            set(&mut call.arguments, values);
        }
        Ok(())
    }
}
