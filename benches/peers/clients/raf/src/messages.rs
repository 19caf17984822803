//! raf with Messages.

use std::process::ExitCode;

use bench_common::Result;
use bench_common::spec::{self, Wire};
use client_raf::{Provider, Raf};
use raf_anthropic::{AnthropicChatClient, AnthropicOptions};

struct Messages;

impl Provider for Messages {
    const NAME: &'static str = "raf-messages";
    const WIRE: Wire = Wire::Messages;
    type Client = AnthropicChatClient;

    fn connect(base_url: &str, model: String) -> Result<AnthropicChatClient> {
        let options = AnthropicOptions::new()
            .with_api_key(spec::API_KEY)
            .with_base_url(base_url)
            .with_model(model);
        Ok(AnthropicChatClient::new(options)?)
    }
}

fn main() -> ExitCode {
    bench_common::main::<Raf<Messages>>()
}
