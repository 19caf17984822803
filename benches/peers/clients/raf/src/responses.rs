//! raf with Responses.

use std::process::ExitCode;

use bench_common::Result;
use bench_common::spec::{self, Wire};
use client_raf::{Provider, Raf};
use raf_openai::{OpenAiOptions, OpenAiResponsesChatClient};

struct Responses;

impl Provider for Responses {
    const NAME: &'static str = "raf-responses";
    const WIRE: Wire = Wire::Responses;
    type Client = OpenAiResponsesChatClient;

    fn connect(base_url: &str, model: String) -> Result<OpenAiResponsesChatClient> {
        let options = OpenAiOptions::new()
            .with_api_key(spec::API_KEY)
            .with_base_url(base_url)
            .with_model(model);
        Ok(OpenAiResponsesChatClient::new(options)?)
    }
}

fn main() -> ExitCode {
    bench_common::main::<Raf<Responses>>()
}
