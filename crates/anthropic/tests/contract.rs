//! The provider holds the laws of a provider, streaming and not.

use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_testing::contract::provider::KEY;
use raf_testing::provider_contract;

fn client(base_url: &str, streaming: bool) -> AnthropicChatClient {
    let options = AnthropicOptions::new()
        .with_base_url(base_url)
        .with_api_key(KEY)
        .with_model("m")
        .with_streaming(streaming);
    AnthropicChatClient::new(options).expect("options that can be used")
}

provider_contract!(
    streaming: AnthropicChatClient,
    |base_url: &str| client(base_url, true),
    wire: Messages
);

provider_contract!(
    whole: AnthropicChatClient,
    |base_url: &str| client(base_url, false),
    wire: Messages,
    skip: {
        text_streams_as_it_arrives => "a reply that is asked for whole comes whole",
    }
);
