//! How one server's requests differ from another's: a set of rules as data.

mod detect;
mod known;

use std::borrow::Cow;

use raf_core::RenderKey;

pub(crate) use detect::detect;
pub use known::KNOWN_DIALECTS;

pub use raf_wire::{CallIds, SchemaForm, StrictForm};

use raf_wire::KeyHeader;

/// The rules by which requests are written for one kind of server.
///
/// Take a known one by name, or start from [`Dialect::compatible`] and change what differs; each rule
/// is a field with a setter of its own. A dialect never changes what a reply may look like: replies
/// are read leniently for all servers alike.
///
/// ```
/// use raf_openai::{Dialect, TokenLimitField};
///
/// let house_gateway = Dialect::named("vllm")
///     .unwrap()
///     .with_name("house-gateway")
///     .with_token_limit(TokenLimitField::MaxTokens)
///     .with_strict_alternation(true);
/// assert_eq!(house_gateway.name(), "house-gateway");
/// ```
#[derive(Clone, Debug)]
pub struct Dialect {
    pub(crate) rules: Rules,
    /// Renders messages: the same for all clones, another one after each change.
    pub(crate) render_key: RenderKey,
}

/// The rules as a plain value, so that known dialects can be constants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each rule is a yes or no of its own"
)]
pub(crate) struct Rules {
    pub(crate) name: Cow<'static, str>,
    pub(crate) token_limit: TokenLimitField,
    pub(crate) content_beside_calls: ContentBesideCalls,
    pub(crate) reasoning: ReasoningEcho,
    pub(crate) schema: SchemaForm,
    pub(crate) strict: StrictForm,
    pub(crate) forced_tool_choice: ForcedToolChoice,
    pub(crate) parallel_tool_calls: bool,
    pub(crate) tools_with_history: bool,
    pub(crate) call_ids: CallIds,
    pub(crate) system: SystemRole,
    pub(crate) single_system: bool,
    pub(crate) strict_alternation: bool,
    pub(crate) user_after_tool: bool,
    pub(crate) assistant_last: AssistantLast,
    pub(crate) names: NameField,
    pub(crate) stream_usage: bool,
    pub(crate) response_format: SchemaSupport,
    pub(crate) seed_field: &'static str,
    pub(crate) reasoning_effort: bool,
    pub(crate) sampling: bool,
    pub(crate) think_tags: bool,
    pub(crate) key_header: KeyHeader,
}

/// The field of the output limit. OpenAI's reasoning models refuse `max_tokens`
/// (teilomillet/gollm#33); Mistral, older Azure versions and many small servers know nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenLimitField {
    /// `max_completion_tokens`.
    MaxCompletionTokens,
    /// `max_tokens`.
    MaxTokens,
}

/// The `content` of an assistant message that only asks for calls. Some servers refuse null
/// (SAIL-Research-Lab/cheetahclaws#72), others the empty text (vercel/ai#13505); leaving the member
/// out is refused by either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContentBesideCalls {
    /// `null`.
    Null,
    /// `""`.
    EmptyText,
}

/// Whether an assistant message takes its `reasoning_content` back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningEcho {
    /// Never: strict servers refuse the member (tashfeenahmed/freellmapi#1070).
    Never,
    /// The opaque details of the provider itself, where there are some (OpenRouter's
    /// `reasoning_details`); no text.
    OwnDetails,
    /// On every message with calls, empty if need be: DeepSeek in thinking mode
    /// (langchain-ai/langchain#37713).
    Required,
    /// On every message with calls, a blank if need be: Kimi (theopenco/llmgateway#2093).
    RequiredNonEmpty,
}

/// What a server makes of a forced tool choice (`required`, or a named tool).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForcedToolChoice {
    /// It takes both forms.
    Allowed,
    /// It refuses force in thinking mode (DeepSeek, Qwen: rig cassette `deepseek/wire_shape_matrix`):
    /// `auto` is sent, and a warning logged.
    AsAuto,
    /// It knows `any` instead of `required` (Mistral's older word).
    AnyWord,
}

/// The role of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SystemRole {
    /// `system` for all, which every server with instructions knows.
    System,
    /// `system`, and `developer` for messages of that role: OpenAI and Azure.
    AndDeveloper,
    /// There is none: instructions go to the start of the next user message (templates of Gemma,
    /// suitenumerique/conversations#197; early reasoning models of OpenAI).
    None,
}

/// A conversation that ends with the assistant, to be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AssistantLast {
    /// Sent as it is.
    Allowed,
    /// Sent with `"prefix": true`: Mistral.
    Prefix,
}

/// Which messages keep the speaker's `name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameField {
    /// All but tool messages.
    Kept,
    /// Those of users: xAI (BerriAI/litellm#9720).
    UserOnly,
    /// None: Mistral (microsoft/autogen#2748).
    Never,
}

/// Whether a server holds the answer to a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaSupport {
    /// `response_format` of type `json_schema`.
    JsonSchema,
    /// `json_object` only: the schema goes into the instructions (`UKGovernmentBEIS/inspect_ai#4916`).
    JsonObject,
    /// Neither: the instructions alone ask for JSON.
    Instructions,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident: $field:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        pub fn $setter(mut self, value: $type) -> Self {
            self.rules.$field = value;
            self.render_key = RenderKey::unique();
            self
        }
    )*};
}

impl Dialect {
    /// What most servers take: the base of all others.
    pub fn compatible() -> Self {
        Self::from_rules(known::COMPATIBLE)
    }

    /// A known dialect, by its name in [`KNOWN_DIALECTS`], whatever its case.
    pub fn named(name: &str) -> Option<Self> {
        known::rules(name).map(Self::from_rules)
    }

    /// The dialect of a server that is recognised by its base URL, else [`Dialect::compatible`].
    ///
    /// Only hosts that belong to one provider, and ports that one local server alone uses, are
    /// recognised.
    pub fn detect(base_url: &str) -> Self {
        detect(base_url)
    }

    pub(crate) fn from_rules(rules: Rules) -> Self {
        let render_key = known::shared_key(&rules);
        Self { rules, render_key }
    }

    /// The dialect's name. Opaque data of replies (thought signatures, reasoning details) goes back
    /// only to a dialect of the same name.
    pub fn name(&self) -> &str {
        &self.rules.name
    }

    /// Sets the name.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.rules.name = Cow::Owned(name.into());
        self.render_key = RenderKey::unique();
        self
    }

    setters! {
        /// Sets the field of the output limit.
        with_token_limit: token_limit: TokenLimitField;
        /// Sets the content of messages that only ask for calls.
        with_content_beside_calls: content_beside_calls: ContentBesideCalls;
        /// Sets whether reasoning goes back.
        with_reasoning_echo: reasoning: ReasoningEcho;
        /// Sets the form of schemas.
        with_schema_form: schema: SchemaForm;
        /// Sets what becomes of `strict`.
        with_strict_form: strict: StrictForm;
        /// Sets what becomes of a forced tool choice.
        with_forced_tool_choice: forced_tool_choice: ForcedToolChoice;
        /// Sets whether `parallel_tool_calls` is known.
        with_parallel_tool_calls: parallel_tool_calls: bool;
        /// Sets whether tools must be declared when the history has calls.
        with_tools_with_history: tools_with_history: bool;
        /// Sets the form of call ids.
        with_call_ids: call_ids: CallIds;
        /// Sets the role of instructions.
        with_system_role: system: SystemRole;
        /// Sets whether all instructions are joined to one first message.
        with_single_system: single_system: bool;
        /// Sets whether neighbours of one role are joined.
        with_strict_alternation: strict_alternation: bool;
        /// Sets whether a user message may follow a tool message directly.
        with_user_after_tool: user_after_tool: bool;
        /// Sets how a conversation ends with the assistant.
        with_assistant_last: assistant_last: AssistantLast;
        /// Sets which messages keep the speaker's name.
        with_name_field: names: NameField;
        /// Sets whether `stream_options` is known, by which a stream reports its usage.
        with_stream_usage: stream_usage: bool;
        /// Sets whether the server holds answers to a schema.
        with_schema_support: response_format: SchemaSupport;
        /// Sets whether `reasoning_effort` is known.
        with_reasoning_effort: reasoning_effort: bool;
        /// Sets whether temperature, nucleus sampling and penalties are sent: reasoning models of
        /// OpenAI refuse them.
        with_sampling: sampling: bool;
        /// Sets whether a `<think>` block at the start of a reply is reasoning.
        with_think_tags: think_tags: bool;
        /// Sets how the key is sent.
        with_key_header: key_header: KeyHeader;
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::compatible()
    }
}

#[cfg(test)]
mod tests;
