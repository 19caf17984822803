//! What the programs beside this file share: a provider that works without a key, a person to ask.

#![expect(
    clippy::print_stdout,
    reason = "the programs beside this file talk to a person at a terminal"
)]

mod provider;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use raf_core::{IChatClient, Result};
use raf_testing::{Latch, Reply};

pub use provider::Provider;

/// A client of the provider that `RAF_PROVIDER` names, as the environment says; without a key or an
/// address there, one of a scripted endpoint on loopback that speaks the provider's protocol over real
/// HTTP and gives these replies. Says which on a line of its own.
///
/// In a program of your own: `OpenAiChatClient::from_env()?`, or that of another provider.
///
/// # Errors
/// A setting in the environment that is missing or wrong.
pub fn provider(script: impl IntoIterator<Item = Reply>) -> Result<Arc<dyn IChatClient>> {
    Provider::from_env()?.client(script)
}

/// A scripted reply that says this word by word, as a model does.
pub fn say(text: &str) -> Reply {
    let pause = Latch::pause(Duration::from_millis(40));
    text.split_inclusive(' ').fold(Reply::new(), |reply, word| {
        reply.gate(&pause).then_text(word)
    })
}

/// Asks the person at the terminal. Where there is none, as in a test, the answer is `otherwise`, and
/// both are shown.
///
/// Standard input is read on a thread of its own: a handler that blocks would hold up the whole stream.
///
/// # Errors
/// Standard input or output cannot be used, or is at its end.
pub async fn ask(question: &str, otherwise: &str) -> io::Result<String> {
    print!("{question} ");
    io::stdout().flush()?;
    if !io::stdin().is_terminal() {
        println!("{otherwise} (nobody is at a terminal: the program answers for itself)");
        return Ok(otherwise.to_owned());
    }
    let read = || {
        let mut line = String::new();
        match io::stdin().read_line(&mut line)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(line.trim().to_owned()),
        }
    };
    tokio::task::spawn_blocking(read)
        .await
        .map_err(io::Error::other)?
}

/// The README and the guides: their programs are compiled and run as tests of this crate.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../CONTRIBUTING.md")]
    mod contributing {}
    #[doc = include_str!("../docs/agents.md")]
    mod agents {}
    #[doc = include_str!("../docs/approvals.md")]
    mod approvals {}
    #[doc = include_str!("../docs/durability.md")]
    mod durability {}
    #[doc = include_str!("../docs/errors.md")]
    mod errors {}
    #[doc = include_str!("../docs/loop.md")]
    mod the_loop {}
    #[doc = include_str!("../docs/middleware.md")]
    mod around_a_tool_call {}
    #[doc = include_str!("../docs/options.md")]
    mod options {}
    #[doc = include_str!("../docs/providers.md")]
    mod providers {}
    #[doc = include_str!("../docs/writing-a-layer.md")]
    mod writing_a_layer {}
    #[doc = include_str!("../docs/writing-a-provider.md")]
    mod writing_a_provider {}
}
