//! The providers hold the laws of a provider, streaming and not.

use raf_openai::{OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient};
use raf_testing::contract::provider::KEY;
use raf_testing::provider_contract;

fn client(base_url: &str, streaming: bool) -> OpenAiChatClient {
    let options = OpenAiOptions::new()
        .with_base_url(base_url)
        .with_api_key(KEY)
        .with_model("m")
        .with_streaming(streaming);
    OpenAiChatClient::new(options).expect("options that can be used")
}

provider_contract!(streaming: OpenAiChatClient, |base_url: &str| client(base_url, true));

provider_contract!(
    whole: OpenAiChatClient,
    |base_url: &str| client(base_url, false),
    skip: {
        text_streams_as_it_arrives => "a reply that is asked for whole comes whole",
    }
);

fn responses_client(base_url: &str, streaming: bool) -> OpenAiResponsesChatClient {
    let options = OpenAiOptions::new()
        .with_base_url(base_url)
        .with_api_key(KEY)
        .with_model("m")
        .with_streaming(streaming);
    OpenAiResponsesChatClient::new(options).expect("options that can be used")
}

provider_contract!(
    responses_streaming: OpenAiResponsesChatClient,
    |base_url: &str| responses_client(base_url, true),
    wire: Responses
);

provider_contract!(
    responses_whole: OpenAiResponsesChatClient,
    |base_url: &str| responses_client(base_url, false),
    wire: Responses,
    skip: {
        text_streams_as_it_arrives => "a reply that is asked for whole comes whole",
    }
);
