//! The known dialects of the Responses API: one row each, every difference with its evidence.

use std::borrow::Cow;

use raf_wire::{KeyHeader, SchemaForm};

use super::{ReasoningModels, ReasoningReplay, Rules, ToolOutputForm};

/// How names of models begin, and whether those models reason (platform.openai.com/docs/models). The
/// first that fits counts.
pub(super) const MODELS: &[(&str, bool)] = &[
    ("gpt-5-chat", false),
    ("gpt-5", true),
    ("gpt-oss", true),
    ("o1", true),
    ("o3", true),
    ("o4", true),
    ("codex", true),
    ("gpt-4", false),
    ("gpt-3", false),
    ("chatgpt-4", false),
];

/// OpenAI: keeps responses; encrypted reasoning goes back where they are not kept.
pub(super) const OPENAI: Rules = Rules {
    name: Cow::Borrowed("openai"),
    server_state: true,
    instructions_with_previous: true,
    instructions_field: false,
    reasoning: ReasoningModels::ByName,
    reasoning_replay: ReasoningReplay::Encrypted,
    reasoning_last: false,
    tool_output: ToolOutputForm::Parts,
    hosted: true,
    token_limit: true,
    // "Expected a value >= 16" (OpenAI, Azure).
    least_tokens: 16,
    sampling: true,
    strict_items: false,
    always_streams: false,
    schema: SchemaForm::Object,
    key_header: KeyHeader::Bearer,
};

/// The names that [`ResponsesDialect::named`](super::ResponsesDialect::named) knows.
pub const KNOWN_RESPONSES_DIALECTS: &[&str] = &[
    "compatible",
    "openai",
    "azure",
    "codex",
    "xai",
    "openrouter",
    "litellm",
    "deepseek",
    "vllm",
    "llamacpp",
    "lmstudio",
    "ollama",
];

/// What most servers take that copy the API: no state, function tools only, nothing opaque, each item
/// with its type.
pub(super) fn compatible(name: &str) -> Rules {
    Rules {
        name: Cow::Owned(name.to_owned()),
        server_state: false,
        reasoning: ReasoningModels::Unknown,
        reasoning_replay: ReasoningReplay::Never,
        tool_output: ToolOutputForm::Text,
        hosted: false,
        least_tokens: 1,
        strict_items: true,
        ..OPENAI
    }
}

fn named(name: &'static str) -> Rules {
    Rules {
        name: Cow::Borrowed(name),
        ..OPENAI
    }
}

fn local(name: &'static str) -> Rules {
    Rules {
        name: Cow::Borrowed(name),
        ..compatible(name)
    }
}

/// The row of a name.
pub(super) fn rules(name: &str) -> Option<Rules> {
    Some(match name.to_ascii_lowercase().as_str() {
        "compatible" => local("compatible"),
        "openai" => OPENAI,
        // The key goes in a header of its own (Azure OpenAI REST reference); names are those of
        // deployments.
        "azure" => Rules {
            key_header: KeyHeader::ApiKey,
            ..named("azure")
        },
        // No system message in the input (ginlix-ai/LangAlpha#100), store false and stream only
        // (RayBytes/ChatMock#51), no output limit and no sampling (RayBytes/ChatMock#103).
        "codex" => Rules {
            server_state: false,
            instructions_field: true,
            token_limit: false,
            sampling: false,
            always_streams: true,
            ..named("codex")
        },
        // Keeps responses, refuses instructions beside previous_response_id (langchain-xai).
        "xai" => Rules {
            instructions_with_previous: false,
            reasoning: ReasoningModels::Unknown,
            ..named("xai")
        },
        // Keeps nothing (openrouter.ai/docs, Responses API); validates items strictly
        // (microsoft/agent-framework#3795); Gemini's reasoning stands behind the message (rig cassette
        // openrouter).
        "openrouter" => Rules {
            server_state: false,
            reasoning: ReasoningModels::Unknown,
            reasoning_last: true,
            strict_items: true,
            ..named("openrouter")
        },
        "litellm" => Rules {
            server_state: false,
            reasoning: ReasoningModels::Unknown,
            strict_items: true,
            ..named("litellm")
        },
        // Thinking wants its text back (diegosouzapw/OmniRoute#13031).
        "deepseek" => Rules {
            reasoning_replay: ReasoningReplay::Text,
            ..local("deepseek")
        },
        // Reasoning is open text (vllm-project/vllm#50256); items of hosted tools are not known
        // (vllm-project/vllm#55974).
        "vllm" => Rules {
            reasoning_replay: ReasoningReplay::Text,
            tool_output: ToolOutputForm::Parts,
            ..local("vllm")
        },
        // Function tools only (ggml-org/llama.cpp#20156), output of tools as text (#23465).
        "llamacpp" => local("llamacpp"),
        // Keeps state (lmstudio.ai/docs, Responses); outputs are text (anomalyco/opencode#21815).
        "lmstudio" => Rules {
            server_state: true,
            ..local("lmstudio")
        },
        // Keeps nothing (docs.ollama.com, OpenAI compatibility).
        "ollama" => local("ollama"),
        _ => return None,
    })
}
