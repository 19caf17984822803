//! The known dialects: one row each, every difference from the common ground with its evidence.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use raf_core::RenderKey;

use super::{
    AssistantLast, CallIds, ContentBesideCalls, ForcedToolChoice, NameField, ReasoningEcho, Rules,
    SchemaForm, SchemaSupport, StrictForm, SystemRole, TokenLimitField,
};
use raf_wire::KeyHeader;

/// The common ground. Each value is the one that the most servers take, and that strict servers
/// do not refuse.
pub(crate) const COMPATIBLE: Rules = Rules {
    name: Cow::Borrowed("compatible"),
    token_limit: TokenLimitField::MaxTokens,
    content_beside_calls: ContentBesideCalls::Null,
    reasoning: ReasoningEcho::Never,
    schema: SchemaForm::Object,
    strict: StrictForm::AsAsked,
    forced_tool_choice: ForcedToolChoice::Allowed,
    parallel_tool_calls: true,
    tools_with_history: false,
    call_ids: CallIds::UpTo(40),
    system: SystemRole::System,
    single_system: false,
    strict_alternation: false,
    user_after_tool: true,
    assistant_last: AssistantLast::Allowed,
    names: NameField::Kept,
    stream_usage: true,
    response_format: SchemaSupport::JsonSchema,
    seed_field: "seed",
    reasoning_effort: true,
    sampling: true,
    think_tags: false,
    key_header: KeyHeader::Bearer,
};

fn named(name: &'static str) -> Rules {
    Rules {
        name: Cow::Borrowed(name),
        ..COMPATIBLE
    }
}

/// The names that [`Dialect::named`](super::Dialect::named) knows.
pub const KNOWN_DIALECTS: &[&str] = &[
    "compatible",
    "openai",
    "azure",
    "vllm",
    "ollama",
    "llamacpp",
    "lmstudio",
    "gemini",
    "mistral",
    "groq",
    "deepseek",
    "qwen",
    "glm",
    "kimi",
    "openrouter",
    "bedrock",
    "anthropic",
    "xai",
    "cerebras",
    "cloudflare",
    "databricks",
    "minimax",
    "litellm",
    "together",
    "fireworks",
];

/// The row of a name.
pub(crate) fn rules(name: &str) -> Option<Rules> {
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "compatible" => COMPATIBLE,
        // Reasoning models refuse max_tokens (teilomillet/gollm#33); all models take the new field.
        "openai" => Rules {
            token_limit: TokenLimitField::MaxCompletionTokens,
            system: SystemRole::AndDeveloper,
            ..named("openai")
        },
        // The key goes in a header of its own (Azure OpenAI REST reference); else as OpenAI.
        "azure" => Rules {
            token_limit: TokenLimitField::MaxCompletionTokens,
            system: SystemRole::AndDeveloper,
            key_header: KeyHeader::ApiKey,
            ..named("azure")
        },
        // Templates of Qwen and Gemma want one system message, first (vllm-project/vllm#41114).
        "vllm" => Rules {
            single_system: true,
            ..named("vllm")
        },
        // Null content is refused by older versions (SAIL-Research-Lab/cheetahclaws#72); models that
        // think leave tags in the text (langchain-ai/langchainjs#9726).
        "ollama" => Rules {
            content_beside_calls: ContentBesideCalls::EmptyText,
            think_tags: true,
            ..named("ollama")
        },
        // Templates want one system message, first; null content is fine (ggml-org/llama.cpp).
        "llamacpp" => Rules {
            single_system: true,
            ..named("llamacpp")
        },
        // Null content is refused (SAIL-Research-Lab/cheetahclaws#72).
        "lmstudio" => Rules {
            content_beside_calls: ContentBesideCalls::EmptyText,
            ..named("lmstudio")
        },
        // A subset of JSON Schema (danny-avila/LibreChat#13850); parallel_tool_calls is unknown
        // (openai/swarm#30); thought signatures go back (lbjlaq/Antigravity-Manager#938: done for
        // every dialect, since only a reply of the same dialect has them).
        "gemini" => Rules {
            schema: SchemaForm::GeminiSubset,
            parallel_tool_calls: false,
            strict: StrictForm::Never,
            reasoning: ReasoningEcho::OwnDetails,
            ..named("gemini")
        },
        // Nine-character ids (anomalyco/opencode#1680), an assistant message between tool and user
        // (NousResearch/hermes-agent#20154), prefix at the end (docs.mistral.ai/api), no name
        // (microsoft/autogen#2748), one system message (vllm-project/vllm#41114), random_seed.
        // `any` is its word for a forced call.
        // stream_options: vercel/ai#1578, usage comes in the last chunk without it.
        "mistral" => Rules {
            call_ids: CallIds::NineAlphanumeric,
            content_beside_calls: ContentBesideCalls::EmptyText,
            user_after_tool: false,
            assistant_last: AssistantLast::Prefix,
            names: NameField::Never,
            single_system: true,
            stream_usage: false,
            seed_field: "random_seed",
            reasoning_effort: false,
            forced_tool_choice: ForcedToolChoice::AnyWord,
            ..named("mistral")
        },
        // Unknown members are refused (mitsuhiko/agent-stuff#19), which the common ground heeds.
        "groq" => Rules {
            token_limit: TokenLimitField::MaxCompletionTokens,
            ..named("groq")
        },
        // Thinking wants its reasoning back with calls (langchain-ai/langchain#37713) and refuses a
        // forced choice (rig cassette deepseek/wire_shape_matrix); no json_schema
        // (UKGovernmentBEIS/inspect_ai#4916); strict in beta only (mpfaffenberger/code_puppy#368).
        "deepseek" => Rules {
            content_beside_calls: ContentBesideCalls::EmptyText,
            reasoning: ReasoningEcho::Required,
            forced_tool_choice: ForcedToolChoice::AsAuto,
            response_format: SchemaSupport::JsonObject,
            strict: StrictForm::Never,
            ..named("deepseek")
        },
        // Thinking refuses a forced choice (rig cassette deepseek/wire_shape_matrix and DashScope's
        // own notes).
        "qwen" => Rules {
            forced_tool_choice: ForcedToolChoice::AsAuto,
            response_format: SchemaSupport::JsonObject,
            ..named("qwen")
        },
        // json_object only (docs.bigmodel.cn).
        "glm" => Rules {
            response_format: SchemaSupport::JsonObject,
            ..named("glm")
        },
        // Reasoning must come back and not be empty (theopenco/llmgateway#2093); empty text is refused
        // (vercel/ai#13505), and json_schema (UKGovernmentBEIS/inspect_ai#4916).
        "kimi" => Rules {
            reasoning: ReasoningEcho::RequiredNonEmpty,
            response_format: SchemaSupport::JsonObject,
            ..named("kimi")
        },
        // Opaque reasoning goes back as it came (openrouter.ai/docs, preserving reasoning).
        "openrouter" => Rules {
            reasoning: ReasoningEcho::OwnDetails,
            ..named("openrouter")
        },
        // Anthropic's rules behind a gateway: tools go along with a history of calls
        // (earendil-works/pi#149), no empty text (vercel/ai#13505), stream_options unknown to older
        // gateways is kept, since LiteLLM and Bedrock's own endpoint take it.
        "bedrock" => Rules {
            tools_with_history: true,
            ..named("bedrock")
        },
        "litellm" => Rules {
            tools_with_history: true,
            ..named("litellm")
        },
        // OpenAI SDK compatibility of the Claude API: system messages are joined by the server,
        // response_format is ignored.
        "anthropic" => Rules {
            tools_with_history: true,
            response_format: SchemaSupport::Instructions,
            single_system: true,
            ..named("anthropic")
        },
        // A name is for users only (BerriAI/litellm#9720).
        "xai" => Rules {
            names: NameField::UserOnly,
            ..named("xai")
        },
        // strict is the same on all tools (mpfaffenberger/code_puppy#368).
        "cerebras" => Rules {
            token_limit: TokenLimitField::MaxCompletionTokens,
            strict: StrictForm::Uniform,
            ..named("cerebras")
        },
        // Null content is refused (SAIL-Research-Lab/cheetahclaws#72).
        "cloudflare" => Rules {
            content_beside_calls: ContentBesideCalls::EmptyText,
            ..named("cloudflare")
        },
        // Unknown members are refused (BerriAI/litellm#36931), which the common ground heeds; empty
        // text too.
        "databricks" => named("databricks"),
        // One system message (vllm-project/vllm#41114); tags in the text (can1357/oh-my-pi#2434).
        "minimax" => Rules {
            single_system: true,
            think_tags: true,
            ..named("minimax")
        },
        "together" => named("together"),
        "fireworks" => named("fireworks"),
        _ => return None,
    })
}

/// One key for all dialects of the same rules that were not changed by a user, so that several
/// clients share what they have rendered.
pub(crate) fn shared_key(rules: &Rules) -> RenderKey {
    static KEYS: Mutex<Vec<(Cow<'static, str>, RenderKey)>> = Mutex::new(Vec::new());
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, key)) = keys.iter().find(|(name, _)| *name == rules.name) {
        return *key;
    }
    let key = RenderKey::unique();
    keys.push((rules.name.clone(), key));
    key
}
