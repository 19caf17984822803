//! From a case's words for a server and its capabilities to a dialect.

use raf_openai::{ReasoningModels, ReasoningReplay, ResponsesDialect, ToolOutputForm};
use raf_testing::wire::named_first;

/// Words that name a server, and its dialect.
const WORDS: &[(&str, &str)] = &[
    ("openai", "openai"),
    ("azure", "azure"),
    ("codex", "codex"),
    ("chatgpt", "codex"),
    ("xai", "xai"),
    ("vllm", "vllm"),
    ("llama.cpp", "llamacpp"),
    ("lm studio", "lmstudio"),
    ("ollama", "ollama"),
    ("openrouter", "openrouter"),
    ("litellm", "litellm"),
    ("deepseek", "deepseek"),
];

/// The dialect of the server that is named first; OpenAI's where none is known, which takes everything
/// back.
pub(crate) fn of_server(server: &str) -> ResponsesDialect {
    named_first(server, WORDS)
        .and_then(ResponsesDialect::named)
        .unwrap_or_else(ResponsesDialect::openai)
}

/// The dialect with a capability as a case writes it: `name`, or `name=value`.
pub(crate) fn with_capability(dialect: ResponsesDialect, capability: &str) -> ResponsesDialect {
    let (name, value) = capability.split_once('=').unwrap_or((capability, "true"));
    let (name, value) = (name.trim(), value.trim());
    let is_true = value == "true";
    match name {
        "reasoning" if is_true => dialect.with_reasoning_models(ReasoningModels::All),
        "reasoning" => dialect.with_reasoning_models(ReasoningModels::None),
        "tool_output_parts" if is_true => dialect.with_tool_output_form(ToolOutputForm::Parts),
        "tool_output_parts" => dialect.with_tool_output_form(ToolOutputForm::Text),
        "reasoning_replay" | "echo_reasoning" => dialect.with_reasoning_replay(match value {
            "text" | "required" => ReasoningReplay::Text,
            "encrypted" => ReasoningReplay::Encrypted,
            _ => ReasoningReplay::Never,
        }),
        "instructions_with_previous" => dialect.with_instructions_beside_previous(is_true),
        "codex_backend" if is_true => ResponsesDialect::named("codex").expect("it is known"),
        "hosted_tools" | "hosted_items" => dialect.with_hosted_tools(is_true),
        "strict_input_items" => dialect.with_strict_items(is_true),
        "previous_response_id" | "server_state" => dialect.with_server_state_support(is_true),
        "max_output_tokens" => dialect.with_token_limit_field(is_true),
        "temperature" | "sampling" => dialect.with_sampling(is_true),
        // One that asks for nothing that a dialect does not do anyway, or that no rule knows yet: then
        // the case's checks say so.
        _ => dialect,
    }
}
