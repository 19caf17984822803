//! What differs from model to model: a table by a part of the name, each row with its evidence.

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelRules {
    /// The default of `max_tokens`; the dialect's own where there is none.
    pub(crate) max_tokens: Option<u32>,
    /// Whether adaptive thinking is the only kind, and sampling options are refused.
    pub(crate) is_adaptive_only: bool,
    /// Whether a conversation may end with the assistant.
    pub(crate) takes_prefill: bool,
}

const UNKNOWN: ModelRules = ModelRules {
    max_tokens: None,
    is_adaptive_only: false,
    takes_prefill: true,
};

/// Models of the fourth generation: at least 32,000 tokens of output.
const FOURTH: ModelRules = ModelRules {
    max_tokens: Some(16_384),
    ..UNKNOWN
};

/// Those that take no prefill (agenticloops-ai/agentic-ai-engineering#43).
const NO_PREFILL: ModelRules = ModelRules {
    takes_prefill: false,
    ..FOURTH
};

/// Those that take adaptive thinking alone (anomalyco/opencode#22863).
const ADAPTIVE: ModelRules = ModelRules {
    is_adaptive_only: true,
    ..NO_PREFILL
};

/// A part of the name, and the rules. The first row that fits counts. Names of Bedrock
/// (`anthropic.claude-…-v1:0`) and Vertex (`claude-…@date`) hold the same parts.
const MODELS: &[(&str, ModelRules)] = &[
    ("claude-opus-4-7", ADAPTIVE),
    ("claude-opus-4-8", ADAPTIVE),
    ("claude-opus-4-9", ADAPTIVE),
    ("claude-opus-5", ADAPTIVE),
    ("claude-sonnet-5", ADAPTIVE),
    ("claude-opus-4-6", NO_PREFILL),
    ("claude-sonnet-4-6", NO_PREFILL),
    ("claude-opus-4", FOURTH),
    ("claude-sonnet-4", FOURTH),
    ("claude-haiku-4", FOURTH),
    // 64,000 tokens of output (models overview).
    ("claude-3-7-sonnet", FOURTH),
    // 8,192 and 4,096 tokens of output at most (models overview).
    (
        "claude-3-5-",
        ModelRules {
            max_tokens: Some(8192),
            ..UNKNOWN
        },
    ),
    (
        "claude-3-",
        ModelRules {
            max_tokens: Some(4096),
            ..UNKNOWN
        },
    ),
    // Thinking is adaptive there, as in the newest of Anthropic's.
    (
        "minimax-m3",
        ModelRules {
            is_adaptive_only: true,
            ..UNKNOWN
        },
    ),
];

/// The rules of a model, by its name.
pub(crate) fn model_rules(model: &str) -> ModelRules {
    let model = model.to_ascii_lowercase().replace('.', "-");
    MODELS
        .iter()
        .find(|(part, _)| model.contains(part))
        .map_or(UNKNOWN, |(_, rules)| *rules)
}
