//! Which provider answers at the bottom of an example's stack: the environment says so.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_core::{Error, IChatClient, Result};
use raf_openai::{OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient};
use raf_testing::{EndpointWire, Reply, ScriptedEndpoint, ScriptedRequest};

/// The providers that there are, by the words that `RAF_PROVIDER` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// Chat Completions, of `OpenAI` and of many others. The default.
    #[default]
    OpenAi,
    /// Responses, of `OpenAI` and of some others.
    Responses,
    /// Messages, of Anthropic and of some others.
    Anthropic,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Responses, Self::Anthropic];

    /// The one that `RAF_PROVIDER` names; without it, or if it is blank, the default.
    ///
    /// # Errors
    /// It names none.
    pub fn from_env() -> Result<Self> {
        match std::env::var("RAF_PROVIDER") {
            Ok(name) if !name.trim().is_empty() => name.trim().parse(),
            _ => Ok(Self::default()),
        }
    }

    /// A client of it, as the environment says; without a key and an address there, one of a scripted
    /// endpoint on loopback that speaks its protocol and gives these replies. Says which on a line of its
    /// own.
    ///
    /// # Errors
    /// A setting in the environment that is missing or wrong.
    pub fn client(self, script: impl IntoIterator<Item = Reply>) -> Result<Arc<dyn IChatClient>> {
        self.client_or(|wire| ScriptedEndpoint::speaking(wire, script))
    }

    /// As [`client`](Self::client), with a scripted endpoint that goes by a rule: what it says follows
    /// from the request alone, so that each process gives the same reply.
    ///
    /// # Errors
    /// A setting in the environment that is missing or wrong.
    pub fn client_by_rule(
        self,
        rule: impl Fn(&ScriptedRequest) -> Reply + Send + Sync + 'static,
    ) -> Result<Arc<dyn IChatClient>> {
        let reply = Reply::from_fn(rule);
        self.client_or(|wire| ScriptedEndpoint::speaking(wire, []).with_fallback(reply))
    }

    fn client_or(
        self,
        scripted: impl FnOnce(EndpointWire) -> ScriptedEndpoint,
    ) -> Result<Arc<dyn IChatClient>> {
        let prefix = match self {
            Self::OpenAi | Self::Responses => "OPENAI",
            Self::Anthropic => "ANTHROPIC",
        };
        let variables = ["API_KEY", "BASE_URL"].map(|name| format!("{prefix}_{name}"));
        if variables.iter().any(|variable| is_set(variable)) {
            let client = self.real()?;
            let metadata = client.metadata();
            println!(
                "Talking to {} at {}.",
                metadata
                    .model
                    .unwrap_or_else(|| format!("no model (set {prefix}_MODEL)")),
                metadata.endpoint.as_deref().unwrap_or("an unknown address"),
            );
            return Ok(client);
        }
        let endpoint = scripted(self.wire());
        let [key, address] = variables;
        println!(
            "No {key} and no {address}: talking to a scripted endpoint at {}, over real HTTP.",
            endpoint.url()
        );
        let client = self.scripted(&endpoint)?;
        // It serves until the program ends.
        std::mem::forget(endpoint);
        Ok(client)
    }

    const fn wire(self) -> EndpointWire {
        match self {
            Self::OpenAi => EndpointWire::ChatCompletions,
            Self::Responses => EndpointWire::Responses,
            Self::Anthropic => EndpointWire::Messages,
        }
    }

    /// As a program of your own does it.
    fn real(self) -> Result<Arc<dyn IChatClient>> {
        Ok(match self {
            Self::OpenAi => Arc::new(OpenAiChatClient::from_env()?),
            Self::Responses => Arc::new(OpenAiResponsesChatClient::from_env()?),
            Self::Anthropic => Arc::new(AnthropicChatClient::from_env()?),
        })
    }

    fn scripted(self, endpoint: &ScriptedEndpoint) -> Result<Arc<dyn IChatClient>> {
        let openai = OpenAiOptions::new()
            .with_base_url(endpoint.url())
            .with_api_key("none")
            .with_model("scripted-model");
        Ok(match self {
            Self::OpenAi => Arc::new(OpenAiChatClient::new(openai)?),
            Self::Responses => Arc::new(OpenAiResponsesChatClient::new(openai)?),
            Self::Anthropic => Arc::new(AnthropicChatClient::new(
                AnthropicOptions::new()
                    .with_base_url(endpoint.url())
                    .with_api_key("none")
                    .with_model("scripted-model"),
            )?),
        })
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
        })
    }
}

impl FromStr for Provider {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|provider| provider.to_string() == name)
            .ok_or_else(|| {
                Error::configuration(format!(
                    "no provider '{name}': set RAF_PROVIDER to openai (Chat Completions), responses or \
                     anthropic"
                ))
            })
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}
