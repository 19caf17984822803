//! Every layer of this crate, and the base that users copy, holds the laws of a layer.

use std::borrow::Cow;

use raf_core::{ChatClientRunOptions, DelegatingChatClient};
use raf_framework::{ConfiguringChatClient, FunctionInvokingChatClient, LoggingChatClient};
use raf_testing::decorator_contract;
use raf_tools::ToolRegistry;

decorator_contract!(delegating: DelegatingChatClient, DelegatingChatClient::new);

decorator_contract!(logging: LoggingChatClient, LoggingChatClient::new);

decorator_contract!(
    logging_with_contents: LoggingChatClient,
    |inner| LoggingChatClient::new(inner)
        .with_contents(true)
        .with_redaction(|text| Cow::Owned(text.to_uppercase()))
);

decorator_contract!(
    configuring: ConfiguringChatClient,
    |inner| ConfiguringChatClient::new(inner, ChatClientRunOptions::new().with_seed(1))
        .with_overrides(ChatClientRunOptions::new().with_temperature(0.5))
);

decorator_contract!(
    function_invoking_without_tools: FunctionInvokingChatClient,
    |inner| FunctionInvokingChatClient::new(inner, ToolRegistry::new()),
    skip: {
        tool_calls_pass_unchanged => "it answers the calls itself: that is what it is for",
        resume_data_is_not_lost => "it refuses the answer with an update, and the new message that came along is answered (E3)",
    }
);
