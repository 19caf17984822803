//! What the programs beside this file share: a provider that works without a key.

#![expect(
    clippy::print_stdout,
    reason = "the programs beside this file talk to a person at a terminal"
)]

use std::time::Duration;

use raf_core::{IChatClient, Result};
use raf_openai::{OpenAiChatClient, OpenAiOptions};
use raf_testing::{Latch, Reply, ScriptedEndpoint};

/// The provider that the environment names; without one, a scripted endpoint on loopback that
/// speaks real Chat Completions and gives these replies. Says which on a line of its own.
///
/// In a program of your own: `OpenAiChatClient::from_env()?`.
///
/// # Errors
/// A setting in the environment that is missing or wrong.
pub fn provider(script: impl IntoIterator<Item = Reply>) -> Result<OpenAiChatClient> {
    if is_set("OPENAI_API_KEY") || is_set("OPENAI_BASE_URL") {
        let client = OpenAiChatClient::from_env()?;
        let metadata = client.metadata();
        println!(
            "Talking to {} at {}.",
            metadata
                .model
                .as_deref()
                .unwrap_or("no model (set OPENAI_MODEL)"),
            metadata.endpoint.as_deref().unwrap_or("an unknown address"),
        );
        return Ok(client);
    }
    let endpoint = ScriptedEndpoint::chat_completions(script);
    let options = OpenAiOptions::new()
        .with_base_url(endpoint.url())
        .with_api_key("none")
        .with_model("scripted-model");
    println!(
        "No OPENAI_API_KEY and no OPENAI_BASE_URL: talking to a scripted endpoint at {}, over real \
         HTTP.",
        endpoint.url()
    );
    // It serves until the program ends.
    std::mem::forget(endpoint);
    OpenAiChatClient::new(options)
}

/// A scripted reply that says this word by word, as a model does.
pub fn say(text: &str) -> Reply {
    let pause = Latch::pause(Duration::from_millis(40));
    text.split_inclusive(' ').fold(Reply::new(), |reply, word| {
        reply.gate(&pause).then_text(word)
    })
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The README and the guides: their programs are compiled and run as tests of this crate.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../CONTRIBUTING.md")]
    mod contributing {}
    #[doc = include_str!("../docs/errors.md")]
    mod errors {}
    #[doc = include_str!("../docs/loop.md")]
    mod the_loop {}
    #[doc = include_str!("../docs/options.md")]
    mod options {}
    #[doc = include_str!("../docs/writing-a-layer.md")]
    mod writing_a_layer {}
    #[doc = include_str!("../docs/writing-a-provider.md")]
    mod writing_a_provider {}
}
