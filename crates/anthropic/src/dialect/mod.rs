//! How one server's requests differ from another's: a set of rules as data.

mod detect;
mod known;
mod models;

use std::borrow::Cow;

use raf_wire::KeyHeader;

pub use known::KNOWN_DIALECTS;
pub(crate) use models::{ModelRules, model_rules};

/// The rules by which requests are written for one kind of server.
///
/// Take a known one by name, or start from [`Dialect::compatible`] and change what differs; each rule
/// is a field with a setter of its own. A dialect never changes what a reply may look like: replies
/// are read leniently for all servers alike. What differs from model to model (adaptive thinking,
/// prefill, the default of `max_tokens`) is a table by the model's name, which the rule
/// [`ThinkingForm::ByModel`] and the like look into.
///
/// ```
/// use raf_anthropic::{Dialect, ThinkingBack};
///
/// let house_gateway = Dialect::named("litellm")
///     .unwrap()
///     .with_name("house-gateway")
///     .with_thinking_back(ThinkingBack::Unsigned);
/// assert_eq!(house_gateway.name(), "house-gateway");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub(crate) rules: Rules,
}

/// The rules as a plain value, so that known dialects can be constants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule is a yes or no of its own"
)]
pub(crate) struct Rules {
    pub(crate) name: Cow<'static, str>,
    pub(crate) form: EndpointForm,
    pub(crate) key_header: KeyHeader,
    pub(crate) betas: bool,
    pub(crate) thinking: ThinkingForm,
    pub(crate) thinking_back: ThinkingBack,
    pub(crate) output_config: bool,
    pub(crate) schema_support: SchemaSupport,
    pub(crate) prefill: Prefill,
    pub(crate) temperature_with_top_p: bool,
    pub(crate) tool_choice_none: bool,
    pub(crate) parallel_switch: bool,
    pub(crate) media_urls: bool,
    pub(crate) max_tokens: u32,
}

/// Where a request goes, and what of it stands in the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointForm {
    /// `POST <base>/v1/messages`, model and `stream` in the body, the version in a header.
    Messages,
    /// `POST <base>/model/<model>/invoke-with-response-stream` (or `/invoke`): no model and no
    /// `stream` in the body, the version in it (aws-samples/serverless-patterns#2742).
    Bedrock,
    /// `POST <base>/models/<model>:streamRawPredict` (or `:rawPredict`): no model in the body, the
    /// version in it (puremachinery/carapace#320). The base URL ends in `/publishers/anthropic`.
    Vertex,
}

/// How thinking is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThinkingForm {
    /// As the model wants it: adaptive for those that take nothing else, else a budget.
    ByModel,
    /// `{"type": "enabled", "budget_tokens": …}`.
    Budget,
    /// `{"type": "adaptive"}`: what Opus 4.7 and later (anomalyco/opencode#22863) and `MiniMax` M3 take
    /// alone. They take no temperature, `top_p` or `top_k` either.
    Adaptive,
    /// Not at all: the server has no such member.
    Never,
}

/// Which thinking blocks of past turns go back. Those of another model or dialect never do
/// (vybestack/llxprt-code#2335).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThinkingBack {
    /// Those with a signature: Anthropic refuses others (anomalyco/opencode#25005).
    Signed,
    /// Those without as well: `DeepSeek` and Kimi want them (NousResearch/hermes-agent#17510).
    Unsigned,
}

/// Whether a server holds the answer to a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaSupport {
    /// `output_config.format` of type `json_schema` (Anthropic's structured outputs; newer models).
    OutputConfig,
    /// The instructions alone ask for JSON.
    Instructions,
}

/// A conversation that ends with the assistant, to be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Prefill {
    /// As the model has it: 4.6 and later refuse it (agenticloops-ai/agentic-ai-engineering#43).
    ByModel,
    /// Sent as it is, without blanks at its end.
    Allowed,
    /// A short message of the user is put behind it.
    Refused,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident: $field:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        pub fn $setter(mut self, value: $type) -> Self {
            self.rules.$field = value;
            self
        }
    )*};
}

impl Dialect {
    /// What most servers take: the base of all others.
    pub fn compatible() -> Self {
        Self {
            rules: known::COMPATIBLE,
        }
    }

    /// A known dialect, by its name in [`KNOWN_DIALECTS`], whatever its case.
    pub fn named(name: &str) -> Option<Self> {
        known::rules(name).map(|rules| Self { rules })
    }

    /// The dialect of a server that is recognised by its base URL, else [`Dialect::compatible`].
    ///
    /// Only hosts that belong to one provider are recognised.
    pub fn detect(base_url: &str) -> Self {
        detect::detect(base_url)
    }

    /// The dialect's name. Opaque data of replies (signatures of thinking, server tools, citations)
    /// goes back only to a dialect of the same name.
    pub fn name(&self) -> &str {
        &self.rules.name
    }

    /// Sets the name.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.rules.name = Cow::Owned(name.into());
        self
    }

    setters! {
        /// Sets where requests go.
        with_endpoint_form: form: EndpointForm;
        /// Sets how the key is sent: `x-api-key` for Anthropic, `Authorization: Bearer` for many
        /// others (VicBilibily/GCMP#11).
        with_key_header: key_header: KeyHeader;
        /// Sets whether beta flags that were asked for are sent: a flag that a server does not know
        /// fails every request (anthropics/claude-code#56595).
        with_betas: betas: bool;
        /// Sets how thinking is asked for.
        with_thinking_form: thinking: ThinkingForm;
        /// Sets which thinking goes back.
        with_thinking_back: thinking_back: ThinkingBack;
        /// Sets whether `output_config` is known (anthropics/claude-code#37746).
        with_output_config: output_config: bool;
        /// Sets whether the server holds answers to a schema.
        with_schema_support: schema_support: SchemaSupport;
        /// Sets how a conversation ends with the assistant.
        with_prefill: prefill: Prefill;
        /// Sets whether temperature and `top_p` may stand beside each other
        /// (BerriAI/litellm#15097).
        with_temperature_with_top_p: temperature_with_top_p: bool;
        /// Sets whether `{"type": "none"}` is a tool choice (Anthropic since 2025).
        with_tool_choice_none: tool_choice_none: bool;
        /// Sets whether `disable_parallel_tool_use` is known.
        with_parallel_switch: parallel_switch: bool;
        /// Sets whether the server fetches images and documents from addresses.
        with_media_urls: media_urls: bool;
        /// Sets `max_tokens` where neither the run, nor the options, nor the model's row say it.
        with_max_tokens: max_tokens: u32;
    }
}

impl Rules {
    /// How this model is asked to think.
    pub(crate) fn thinking_of(&self, model: &ModelRules) -> ThinkingForm {
        match self.thinking {
            ThinkingForm::ByModel if model.is_adaptive_only => ThinkingForm::Adaptive,
            ThinkingForm::ByModel => ThinkingForm::Budget,
            form => form,
        }
    }

    /// Whether a conversation may end with the assistant.
    pub(crate) fn takes_prefill(&self, model: &ModelRules) -> bool {
        match self.prefill {
            Prefill::ByModel => model.takes_prefill,
            Prefill::Allowed => true,
            Prefill::Refused => false,
        }
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::compatible()
    }
}

#[cfg(test)]
mod tests;
