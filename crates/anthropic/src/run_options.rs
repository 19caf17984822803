//! What only this provider knows of a run: thinking, prompt caching, tools of the server.

use std::fmt;

use raf_core::ChatClientRunOptions;
use serde_json::Value;

/// What of a run only the Messages API has. Unset fields fall back to
/// [`AnthropicOptions::with_defaults`](crate::AnthropicOptions::with_defaults), then to nothing.
///
/// Given with a run through [`AnthropicRunOptionsExt`]; a layer above need not know it.
///
/// `Debug` shows the names of server tools only.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct AnthropicRunOptions {
    /// Whether and how the model thinks. It goes before
    /// [`reasoning_effort`](ChatClientRunOptions::reasoning_effort), which says the same more
    /// roughly.
    pub thinking: Option<Thinking>,
    /// Where breakpoints of the prompt cache are put. None by default.
    pub caching: Option<PromptCaching>,
    /// Tools that the server runs, as the API has them:
    /// `{"type": "web_search_20250305", "name": "web_search"}`. They stand before the run's own.
    pub server_tools: Option<Vec<Value>>,
    /// Samples from the likeliest so many tokens only. Refused beside thinking.
    pub top_k: Option<u32>,
}

/// Whether and how the model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Thinking {
    /// Not at all.
    Disabled,
    /// As much as the model finds right (newer models; see [`ThinkingForm`](crate::ThinkingForm)).
    Adaptive,
    /// At most so many tokens: at least 1024, and fewer than `max_tokens`.
    Budget(u32),
}

/// How long a cached prefix lives after its last use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CacheLifetime {
    /// Five minutes. The default.
    #[default]
    FiveMinutes,
    /// An hour. Writing costs more.
    OneHour,
}

/// Where breakpoints of the prompt cache are put by themselves.
///
/// Explicit ones are set with the part: `cache_control` among the extra fields of a text, a media part
/// or a tool result (`{"type": "ephemeral"}`, with `"ttl": "1h"` for an hour). The API takes at most
/// four in all: explicit ones come first, then automatic ones as far as there is room, in this order:
/// the end of the conversation, the instructions, the tools, the earlier messages.
///
/// A breakpoint is never put on thinking or on empty text. Where one of an hour follows one of five
/// minutes, the earlier is raised to an hour, since the API refuses that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptCaching {
    /// Behind the last tool.
    pub tools: bool,
    /// Behind the last instruction.
    pub system: bool,
    /// Behind the last so many messages of the user (tool results are such messages).
    pub messages: u8,
    /// How long they live.
    pub lifetime: CacheLifetime,
}

impl PromptCaching {
    /// Breakpoints behind the tools, the instructions and the last two messages of the user: in a tool
    /// loop each request reads what the one before has written.
    pub const fn automatic() -> Self {
        Self {
            tools: true,
            system: true,
            messages: 2,
            lifetime: CacheLifetime::FiveMinutes,
        }
    }

    /// None by themselves; explicit ones count.
    pub const fn explicit() -> Self {
        Self {
            tools: false,
            system: false,
            messages: 0,
            lifetime: CacheLifetime::FiveMinutes,
        }
    }

    /// Sets whether there is one behind the tools.
    pub const fn with_tools(mut self, tools: bool) -> Self {
        self.tools = tools;
        self
    }

    /// Sets whether there is one behind the instructions.
    pub const fn with_system(mut self, system: bool) -> Self {
        self.system = system;
        self
    }

    /// Sets behind how many of the last messages of the user there is one.
    pub const fn with_messages(mut self, messages: u8) -> Self {
        self.messages = messages;
        self
    }

    /// Sets how long they live.
    pub const fn with_lifetime(mut self, lifetime: CacheLifetime) -> Self {
        self.lifetime = lifetime;
        self
    }
}

impl AnthropicRunOptions {
    /// Options with everything unset.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether and how the model thinks.
    pub fn with_thinking(mut self, thinking: Thinking) -> Self {
        self.thinking = Some(thinking);
        self
    }

    /// Sets where breakpoints of the prompt cache are put.
    pub fn with_caching(mut self, caching: PromptCaching) -> Self {
        self.caching = Some(caching);
        self
    }

    /// Sets the tools that the server runs.
    pub fn with_server_tools(mut self, tools: impl IntoIterator<Item = Value>) -> Self {
        self.server_tools = Some(tools.into_iter().collect());
        self
    }

    /// Samples from the likeliest so many tokens only.
    pub fn with_top_k(mut self, top_k: u32) -> Self {
        self.top_k = Some(top_k);
        self
    }

    /// These, and where they are unset those below.
    pub(crate) fn over(&self, below: &Self) -> Self {
        Self {
            thinking: self.thinking.or(below.thinking),
            caching: self.caching.or(below.caching),
            server_tools: self
                .server_tools
                .clone()
                .or_else(|| below.server_tools.clone()),
            top_k: self.top_k.or(below.top_k),
        }
    }
}

impl fmt::Debug for AnthropicRunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.server_tools.as_ref().map(|tools| {
            let names = tools.iter().map(|tool| tool["name"].as_str());
            names.map(Option::unwrap_or_default).collect::<Vec<_>>()
        });
        f.debug_struct("AnthropicRunOptions")
            .field("thinking", &self.thinking)
            .field("caching", &self.caching)
            .field("server_tools", &tools)
            .field("top_k", &self.top_k)
            .finish()
    }
}

/// The options of this provider as a field of the run's.
pub trait AnthropicRunOptionsExt {
    /// Gives what only the Messages API has.
    ///
    /// ```
    /// use raf_anthropic::{AnthropicRunOptions, AnthropicRunOptionsExt, PromptCaching, Thinking};
    /// use raf_core::ChatClientRunOptions;
    ///
    /// let own = AnthropicRunOptions::new()
    ///     .with_thinking(Thinking::Budget(4096))
    ///     .with_caching(PromptCaching::automatic());
    /// let options = ChatClientRunOptions::new().with_anthropic(own);
    /// ```
    #[must_use]
    fn with_anthropic(self, own: AnthropicRunOptions) -> Self;
}

impl AnthropicRunOptionsExt for ChatClientRunOptions {
    fn with_anthropic(self, own: AnthropicRunOptions) -> Self {
        self.with_extension(own)
    }
}
