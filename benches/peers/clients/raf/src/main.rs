//! raf with Chat Completions.

use std::process::ExitCode;

use bench_common::Result;
use bench_common::spec::{self, Wire};
use client_raf::{Provider, Raf};
use raf_openai::{OpenAiChatClient, OpenAiOptions};

struct Chat;

impl Provider for Chat {
    const NAME: &'static str = "raf";
    const WIRE: Wire = Wire::Chat;
    type Client = OpenAiChatClient;

    fn connect(base_url: &str, model: String) -> Result<OpenAiChatClient> {
        let options = OpenAiOptions::new()
            .with_api_key(spec::API_KEY)
            .with_base_url(base_url)
            .with_model(model);
        Ok(OpenAiChatClient::new(options)?)
    }
}

fn main() -> ExitCode {
    bench_common::main::<Raf<Chat>>()
}
