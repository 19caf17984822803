//! Each suite passes for an implementation that is right.

use raf_core::DelegatingChatClient;
use raf_testing::contract::provider::KEY;
use raf_testing::{Behaviour, CountingTool, EchoTool, ScriptedTool};
use serde_json::json;

use crate::plain_provider::PlainProvider;

raf_testing::decorator_contract!(delegating: DelegatingChatClient, DelegatingChatClient::new);

raf_testing::provider_contract!(
    plain_provider: PlainProvider,
    |base_url: &str| PlainProvider::new(base_url, KEY),
    skip: {
        statuses_map_to_kinds => "it knows no kinds: it is here to test the suite",
        a_body_that_is_not_json_maps_to_a_kind => "it knows no kinds: it is here to test the suite",
    }
);

raf_testing::tool_contract!(
    echo: EchoTool, EchoTool::new,
    valid: json!({"text": "hi"}), invalid: json!({"text": 1})
);

raf_testing::tool_contract!(
    count: CountingTool, CountingTool::new,
    valid: json!({}), invalid: json!([])
);

raf_testing::tool_contract!(
    gated: ScriptedTool,
    || ScriptedTool::new("gated").gated().always(Behaviour::void()),
    valid: json!({}), invalid: json!("text")
);
