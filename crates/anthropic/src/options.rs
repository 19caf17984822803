//! The configuration of a client, in code and from the environment.

use std::fmt;

use raf_core::Result;
use raf_wire::EndpointOptions;

use crate::dialect::Dialect;
use crate::endpoint::MESSAGES;
use crate::run_options::AnthropicRunOptions;

/// Where Anthropic itself answers.
pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// The version of the API that is spoken.
pub const API_VERSION: &str = "2023-06-01";

/// What is done with settings that the API refuses beside each other: a forced tool choice with
/// thinking, a temperature with thinking or with `top_p`, a budget that does not fit, a stop text of
/// blanks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Conflicts {
    /// The run is refused before anything is sent, with [`ErrorKind::Misuse`] and words that say what
    /// to change. The default.
    ///
    /// [`ErrorKind::Misuse`]: raf_core::ErrorKind::Misuse
    #[default]
    Refuse,
    /// What matters less gives way, and a warning is logged: the choice becomes `auto`, sampling is
    /// left out, `top_p` gives way to the temperature, the budget is fitted, the text is left out.
    Adapt,
}

/// Options of an [`AnthropicChatClient`](crate::AnthropicChatClient).
///
/// | option | default |
/// |---|---|
/// | base URL | `https://api.anthropic.com` (the part before `/v1/messages`) |
/// | key | none (local servers need none) |
/// | model | none: each run must name one |
/// | `max_tokens` | by model, else by dialect: 4096 |
/// | dialect | recognised by the base URL, else [`Dialect::compatible`] |
/// | betas | none |
/// | streaming | on |
/// | continuations of a paused turn | 8 |
/// | settings that the API refuses together | [`Conflicts::Refuse`] |
/// | thinking, caching, server tools | none: see [`AnthropicRunOptions`] |
/// | timeouts, limits | see [`Timeouts`](crate::Timeouts), [`Limits`](crate::Limits) |
///
/// `Debug` shows no key, and of extra headers the names only.
#[derive(Clone)]
pub struct AnthropicOptions {
    pub(crate) endpoint: EndpointOptions,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) betas: Vec<String>,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) continuations: u32,
    pub(crate) conflicts: Conflicts,
    pub(crate) defaults: AnthropicRunOptions,
}

impl AnthropicOptions {
    /// Options of Anthropic itself, without a key.
    pub fn new() -> Self {
        Self {
            endpoint: EndpointOptions::new(DEFAULT_BASE_URL),
            max_tokens: None,
            betas: Vec::new(),
            dialect: None,
            continuations: 8,
            conflicts: Conflicts::default(),
            defaults: AnthropicRunOptions::default(),
        }
    }

    /// Options from the environment: `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL` and `ANTHROPIC_MODEL`; a
    /// variable that is blank counts as unset.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if there is neither a key nor
    /// a base URL.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Options from variables that a function looks up, as
    /// [`from_env`](AnthropicOptions::from_env) does in the environment.
    ///
    /// # Errors
    /// As [`from_env`](AnthropicOptions::from_env).
    pub fn from_variables(look_up: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let endpoint = EndpointOptions::from_variables(
            "ANTHROPIC",
            look_up,
            DEFAULT_BASE_URL,
            "no endpoint is configured: set ANTHROPIC_API_KEY for Anthropic, or \
             ANTHROPIC_BASE_URL for another server (http://localhost:8080, say; one on your own \
             machine needs no key). ANTHROPIC_MODEL names the model",
        )?;
        Ok(Self {
            endpoint,
            ..Self::new()
        })
    }

    raf_wire::endpoint_setters!(
        "Sets the address below which `/v1/messages` lies. What stands behind it may be there too."
    );

    /// Sets the most tokens of one reply where a run does not say it. The API wants the number with
    /// each request.
    pub fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Asks for a beta feature (`anthropic-beta`): `files-api-2025-04-14`, say. Left out, with a
    /// warning, where the dialect knows no betas.
    pub fn with_beta(mut self, flag: impl Into<String>) -> Self {
        self.betas.push(flag.into());
        self
    }

    /// Sets the rules by which requests are written, instead of those recognised by the base URL.
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets how often a turn that the server paused (`pause_turn`, with tools that the server runs) is
    /// gone on with by itself, within the same stream. After that, and with `0`, the run ends with
    /// [`FinishReason::Other`](raf_core::FinishReason::Other) of `pause_turn`, and a run with the same
    /// messages and what came goes on with it.
    pub fn with_continuations(mut self, most: u32) -> Self {
        self.continuations = most;
        self
    }

    /// Sets what is done with settings that the API refuses beside each other.
    pub fn with_conflicts(mut self, conflicts: Conflicts) -> Self {
        self.conflicts = conflicts;
        self
    }

    /// Sets thinking, caching and server tools where a run does not say them.
    pub fn with_defaults(mut self, defaults: AnthropicRunOptions) -> Self {
        self.defaults = defaults;
        self
    }
}

impl Default for AnthropicOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for AnthropicOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("AnthropicOptions");
        self.endpoint.write_fields(&MESSAGES, &mut fields);
        fields
            .field("max_tokens", &self.max_tokens)
            .field("betas", &self.betas)
            .field("dialect", &self.dialect.as_ref().map(Dialect::name))
            .field("continuations", &self.continuations)
            .field("conflicts", &self.conflicts)
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}
