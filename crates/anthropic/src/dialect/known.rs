//! The known dialects: one row each, every difference from the common ground with its evidence.

use std::borrow::Cow;

use raf_wire::KeyHeader;

use super::{EndpointForm, Prefill, Rules, SchemaSupport, ThinkingBack, ThinkingForm};

/// The common ground: what strict and old servers take alike.
pub(crate) const COMPATIBLE: Rules = Rules {
    name: Cow::Borrowed("compatible"),
    form: EndpointForm::Messages,
    key_header: KeyHeader::XApiKey,
    betas: false,
    thinking: ThinkingForm::Budget,
    thinking_back: ThinkingBack::Signed,
    output_config: false,
    schema_support: SchemaSupport::Instructions,
    prefill: Prefill::ByModel,
    temperature_with_top_p: false,
    tool_choice_none: false,
    parallel_switch: true,
    media_urls: true,
    max_tokens: 4096,
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
    "anthropic",
    "bedrock",
    "vertex",
    "deepseek",
    "kimi",
    "glm",
    "minimax",
    "llamacpp",
    "sglang",
    "vllm",
    "ollama",
    "openrouter",
    "litellm",
    "copilot",
];

/// The row of a name.
pub(crate) fn rules(name: &str) -> Option<Rules> {
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "compatible" => COMPATIBLE,
        // The Messages API reference. tool_choice none since February 2025.
        "anthropic" => Rules {
            betas: true,
            thinking: ThinkingForm::ByModel,
            output_config: true,
            tool_choice_none: true,
            ..named("anthropic")
        },
        // Version in the body, no model, no stream (aws-samples/serverless-patterns#2742); an API key
        // of Bedrock goes as a bearer; sources are base64 alone (Bedrock user guide, Claude Messages
        // API); output_config is refused (anthropics/claude-code#37746).
        "bedrock" => Rules {
            form: EndpointForm::Bedrock,
            key_header: KeyHeader::Bearer,
            betas: true,
            thinking: ThinkingForm::ByModel,
            media_urls: false,
            tool_choice_none: true,
            ..named("bedrock")
        },
        // Version in the body, the model in the address (puremachinery/carapace#320); output_config is
        // refused (anthropics/claude-code#37746).
        "vertex" => Rules {
            form: EndpointForm::Vertex,
            key_header: KeyHeader::Bearer,
            betas: true,
            thinking: ThinkingForm::ByModel,
            tool_choice_none: true,
            ..named("vertex")
        },
        // Its own thinking must come back, signed or not (NousResearch/hermes-agent#17510).
        "deepseek" => Rules {
            thinking_back: ThinkingBack::Unsigned,
            ..named("deepseek")
        },
        // Looks at Authorization alone (VicBilibily/GCMP#11); thinking must come back
        // (NousResearch/hermes-agent#17510).
        "kimi" => Rules {
            key_header: KeyHeader::Bearer,
            thinking_back: ThinkingBack::Unsigned,
            ..named("kimi")
        },
        // Takes either header; Bearer is what its guide shows (VicBilibily/GCMP#11).
        "glm" => Rules {
            key_header: KeyHeader::Bearer,
            ..named("glm")
        },
        // "Please carry the API secret key in the 'Authorization' field" (VicBilibily/GCMP#11);
        // interleaved thinking is wanted back; M3 is adaptive (see the models' table).
        "minimax" => Rules {
            key_header: KeyHeader::Bearer,
            thinking: ThinkingForm::ByModel,
            thinking_back: ThinkingBack::Unsigned,
            ..named("minimax")
        },
        // Local servers do not sign (kekzl/imp#1555, sgl-project/sglang#26795, ollama/ollama#15287),
        // and lose the thread of a tool loop without its thoughts.
        "llamacpp" => Rules {
            thinking_back: ThinkingBack::Unsigned,
            ..named("llamacpp")
        },
        "sglang" => Rules {
            thinking_back: ThinkingBack::Unsigned,
            ..named("sglang")
        },
        "vllm" => Rules {
            thinking_back: ThinkingBack::Unsigned,
            ..named("vllm")
        },
        "ollama" => Rules {
            thinking_back: ThinkingBack::Unsigned,
            ..named("ollama")
        },
        // The key is a bearer (openrouter.ai/docs, Anthropic Messages).
        "openrouter" => Rules {
            key_header: KeyHeader::Bearer,
            thinking: ThinkingForm::ByModel,
            tool_choice_none: true,
            ..named("openrouter")
        },
        // Proxy keys go as a bearer or as x-api-key; what it hands on is Anthropic's.
        "litellm" => Rules {
            thinking: ThinkingForm::ByModel,
            ..named("litellm")
        },
        // No model of it takes a prefill (agenticloops-ai/agentic-ai-engineering#43).
        "copilot" => Rules {
            key_header: KeyHeader::Bearer,
            prefill: Prefill::Refused,
            ..named("copilot")
        },
        _ => return None,
    })
}
