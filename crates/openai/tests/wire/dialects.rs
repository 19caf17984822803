//! From a case's words for a server and its capabilities to a dialect.

use raf_openai::{
    ContentBesideCalls, Dialect, ForcedToolChoice, NameField, ReasoningEcho, SchemaSupport,
    StrictForm, SystemRole, TokenLimitField,
};
use raf_testing::wire::named_first;

/// Words that name a server, and its dialect.
const WORDS: &[(&str, &str)] = &[
    ("openai", "openai"),
    ("azure", "azure"),
    ("vllm", "vllm"),
    ("sglang", "vllm"),
    ("ollama", "ollama"),
    ("llama.cpp", "llamacpp"),
    ("lm studio", "lmstudio"),
    ("gemini", "gemini"),
    ("mistral", "mistral"),
    ("groq", "groq"),
    ("deepseek", "deepseek"),
    ("qwen", "qwen"),
    ("dashscope", "qwen"),
    ("glm", "glm"),
    ("zhipu", "glm"),
    ("kimi", "kimi"),
    ("moonshot", "kimi"),
    ("openrouter", "openrouter"),
    ("bedrock", "bedrock"),
    ("litellm", "litellm"),
    ("anthropic", "anthropic"),
    ("xai", "xai"),
    ("cerebras", "cerebras"),
    ("cloudflare", "cloudflare"),
    ("databricks", "databricks"),
    ("minimax", "minimax"),
];

/// The dialect of the server that is named first.
pub(crate) fn of_server(server: &str) -> Dialect {
    named_first(server, WORDS)
        .and_then(Dialect::named)
        .unwrap_or_else(Dialect::compatible)
}

/// The dialect with a capability as a case writes it: `name`, or `name=value`.
pub(crate) fn with_capability(dialect: Dialect, capability: &str) -> Dialect {
    let (name, value) = capability.split_once('=').unwrap_or((capability, "true"));
    let (name, value) = (name.trim(), value.trim());
    let is_true = value == "true";
    match name {
        "strict_alternation" => dialect.with_strict_alternation(is_true),
        "single_system" => dialect.with_single_system(is_true),
        "content_null" if !is_true => {
            dialect.with_content_beside_calls(ContentBesideCalls::EmptyText)
        }
        "content_empty" if !is_true => dialect.with_content_beside_calls(ContentBesideCalls::Null),
        "parallel_tool_calls" => dialect.with_parallel_tool_calls(is_true),
        "stream_options" => dialect.with_stream_usage(is_true),
        "json_schema" if !is_true => dialect.with_schema_support(SchemaSupport::JsonObject),
        "json_schema" => dialect.with_schema_support(SchemaSupport::JsonSchema),
        "max_completion_tokens" if is_true => {
            dialect.with_token_limit(TokenLimitField::MaxCompletionTokens)
        }
        "max_completion_tokens" => dialect.with_token_limit(TokenLimitField::MaxTokens),
        "echo_reasoning" => dialect.with_reasoning_echo(match value {
            "required" => ReasoningEcho::Required,
            "non_empty" => ReasoningEcho::RequiredNonEmpty,
            _ => ReasoningEcho::Never,
        }),
        "strict" if !is_true => dialect.with_strict_form(StrictForm::Never),
        "system_role" if !is_true => dialect.with_system_role(SystemRole::None),
        "developer_role" if !is_true => dialect.with_system_role(SystemRole::System),
        "temperature" | "sampling" => dialect.with_sampling(is_true),
        "name" | "name_field" if !is_true => dialect.with_name_field(NameField::Never),
        "reasoning_effort" => dialect.with_reasoning_effort(is_true),
        "tools_with_history" => dialect.with_tools_with_history(is_true),
        "tool_choice_required" if !is_true => {
            dialect.with_forced_tool_choice(ForcedToolChoice::AsAuto)
        }
        // A capability that asks for nothing that a dialect does not do anyway, or one that no rule
        // knows yet: then the case's checks say so.
        _ => dialect,
    }
}
