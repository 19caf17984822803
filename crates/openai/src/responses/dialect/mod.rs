//! How one server's Responses API differs from another's: a set of rules as data.

mod known;

use std::borrow::Cow;

use raf_wire::{KeyHeader, SchemaForm};

pub use known::KNOWN_RESPONSES_DIALECTS;

/// The rules by which requests are written for one kind of server that has `/responses`.
///
/// Take a known one by name, or start from [`ResponsesDialect::openai`] and change what differs. A
/// dialect never changes what a reply may look like: replies are read leniently for all servers alike.
///
/// ```
/// use raf_openai::{ReasoningReplay, ResponsesDialect};
///
/// let house_gateway = ResponsesDialect::named("vllm")
///     .unwrap()
///     .with_name("house-gateway")
///     .with_reasoning_replay(ReasoningReplay::Never);
/// assert_eq!(house_gateway.name(), "house-gateway");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponsesDialect {
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
    pub(crate) server_state: bool,
    pub(crate) instructions_with_previous: bool,
    pub(crate) instructions_field: bool,
    pub(crate) reasoning: ReasoningModels,
    pub(crate) reasoning_replay: ReasoningReplay,
    pub(crate) reasoning_last: bool,
    pub(crate) tool_output: ToolOutputForm,
    pub(crate) hosted: bool,
    pub(crate) token_limit: bool,
    pub(crate) least_tokens: u32,
    pub(crate) sampling: bool,
    pub(crate) strict_items: bool,
    pub(crate) always_streams: bool,
    pub(crate) schema: SchemaForm,
    pub(crate) key_header: KeyHeader,
}

/// Which models reason. Those that do refuse temperature and nucleus sampling, those that do not
/// refuse `reasoning` and the asking for encrypted reasoning (BerriAI/litellm#38842).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningModels {
    /// Told by the beginning of the model's name, OpenAI's own; of other models all is sent that was
    /// asked for.
    ByName,
    /// All: no sampling is sent.
    All,
    /// None: no reasoning is sent.
    None,
    /// Not known: all is sent that was asked for.
    Unknown,
}

/// How reasoning of an earlier reply goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningReplay {
    /// As the item that came, with its encrypted content: OpenAI, Azure, xAI. Reasoning of another
    /// provider or model is left out.
    Encrypted,
    /// As text; encrypted content is refused: vLLM (vllm-project/vllm#50256), DeepSeek
    /// (diegosouzapw/OmniRoute#13031).
    Text,
    /// Not at all.
    Never,
}

/// What the output of a tool may be in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolOutputForm {
    /// A text, or a list of parts where the result has media.
    Parts,
    /// A text only: LM Studio, gateways (anomalyco/opencode#21815), llama.cpp
    /// (ggml-org/llama.cpp#23465). Media follow in a message of the user.
    Text,
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

impl ResponsesDialect {
    /// OpenAI itself: the base of all others.
    pub fn openai() -> Self {
        Self {
            rules: known::OPENAI,
        }
    }

    /// A known dialect, by its name in [`KNOWN_RESPONSES_DIALECTS`], whatever its case.
    pub fn named(name: &str) -> Option<Self> {
        known::rules(name).map(|rules| Self { rules })
    }

    /// The dialect of a server that is recognised by its base URL, else `compatible`.
    pub fn detect(base_url: &str) -> Self {
        Self::of(crate::Dialect::detect(base_url).name())
    }

    /// The dialect of the server that a name of a [`Dialect`](crate::Dialect) means.
    pub(crate) fn of(name: &str) -> Self {
        Self {
            rules: known::rules(name).unwrap_or_else(|| known::compatible(name)),
        }
    }

    /// The dialect's name. Opaque data of replies (encrypted reasoning, items of the server's own) goes
    /// back only to a dialect of the same name.
    pub fn name(&self) -> &str {
        &self.rules.name
    }

    /// Sets the name.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.rules.name = Cow::Owned(name.into());
        self
    }

    setters! {
        /// Sets whether the server keeps responses and conversations.
        with_server_state_support: server_state: bool;
        /// Sets whether instructions may go along with `previous_response_id`: xAI refuses it, OpenAI
        /// does not remember them.
        with_instructions_beside_previous: instructions_with_previous: bool;
        /// Sets whether system messages always go into `instructions` and never into the input: the
        /// backend of Codex.
        with_instructions_field: instructions_field: bool;
        /// Sets which models reason.
        with_reasoning_models: reasoning: ReasoningModels;
        /// Sets how reasoning goes back.
        with_reasoning_replay: reasoning_replay: ReasoningReplay;
        /// Sets whether reasoning behind all else of its reply goes back too (OpenRouter with Gemini);
        /// OpenAI refuses reasoning that nothing follows (continuedev/continue#8933).
        with_reasoning_last: reasoning_last: bool;
        /// Sets what the output of a tool may be.
        with_tool_output_form: tool_output: ToolOutputForm;
        /// Sets whether the server has tools of its own, and knows their items.
        with_hosted_tools: hosted: bool;
        /// Sets whether `max_output_tokens` is known.
        with_token_limit_field: token_limit: bool;
        /// Sets the least `max_output_tokens` that the server takes; less is raised to it.
        with_least_output_tokens: least_tokens: u32;
        /// Sets whether temperature and nucleus sampling are sent.
        with_sampling: sampling: bool;
        /// Sets whether each item needs its `type`, and messages of the assistant an id and a status
        /// (microsoft/agent-framework#3795).
        with_strict_items: strict_items: bool;
        /// Sets whether the server only streams, whatever was asked for.
        with_streams_only: always_streams: bool;
        /// Sets the form of schemas.
        with_schema_form: schema: SchemaForm;
        /// Sets how the key is sent.
        with_key_header: key_header: KeyHeader;
    }
}

impl Rules {
    /// Whether the model is known to reason, as its name begins.
    pub(crate) fn reasons(&self, model: &str) -> Option<bool> {
        match self.reasoning {
            ReasoningModels::All => Some(true),
            ReasoningModels::None => Some(false),
            ReasoningModels::Unknown => None,
            ReasoningModels::ByName => known::MODELS
                .iter()
                .find(|(start, _)| model.starts_with(start))
                .map(|(_, reasons)| *reasons),
        }
    }
}

impl Default for ResponsesDialect {
    fn default() -> Self {
        Self::openai()
    }
}
