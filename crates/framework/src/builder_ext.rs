//! The layers of this crate as methods of the builder.

use raf_core::{ChatClientBuilder, ChatClientLayer, ChatClientRunOptions, LayerPlacement};

use crate::approving::{ApprovingChatClient, IApprovalHandler};
use crate::configuring::ConfiguringChatClient;
use crate::function_invoking::{FunctionInvokingChatClient, FunctionInvokingOptions};
use crate::into_tools::IntoTools;
use crate::logging::LoggingChatClient;

/// Adds layers of this crate to a [`ChatClientBuilder`]. The first layer added is the outermost.
///
/// ```
/// use raf_core::{ChatClientBuilder, ChatClientRunOptions};
/// use raf_framework::ChatClientBuilderExt;
/// use raf_tools::tool_fn;
///
/// # fn stack(provider: impl raf_core::IChatClient + 'static) -> raf_core::Result<()> {
/// let now = tool_fn("now", "Says what time it is.", |(): ()| async { "noon" });
/// let client = ChatClientBuilder::new(provider)
///     .logging()
///     .configuring(ChatClientRunOptions::new().with_temperature(0.2))
///     .function_invoking([now])
///     .build()?;
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
pub trait ChatClientBuilderExt: Sized {
    /// Adds the loop with default options: [`FunctionInvokingChatClient`]. Takes a registry or a list
    /// of tools; what is wrong with them, [`build`](ChatClientBuilder::build) says.
    fn function_invoking(self, tools: impl IntoTools) -> Self;

    /// Adds the loop: [`FunctionInvokingChatClient`].
    fn function_invoking_with(
        self,
        tools: impl IntoTools,
        options: FunctionInvokingOptions,
    ) -> Self;

    /// Settles calls that wait by a handler, a closure for example: [`ApprovingChatClient`]. It belongs
    /// before the loop.
    fn approving(self, handler: impl IApprovalHandler + 'static) -> Self;

    /// Adds logging without contents: [`LoggingChatClient`].
    fn logging(self) -> Self;

    /// Adds logging, set up: `.logging_with(|logging| logging.with_contents(true))`.
    fn logging_with(
        self,
        configure: impl FnOnce(LoggingChatClient) -> LoggingChatClient + Send + 'static,
    ) -> Self;

    /// Adds default options: [`ConfiguringChatClient`].
    fn configuring(self, defaults: ChatClientRunOptions) -> Self;

    /// Adds default options, and options that win over those of the run:
    /// [`ConfiguringChatClient`].
    fn configuring_with(
        self,
        defaults: ChatClientRunOptions,
        overrides: ChatClientRunOptions,
    ) -> Self;
}

impl ChatClientBuilderExt for ChatClientBuilder {
    fn function_invoking(self, tools: impl IntoTools) -> Self {
        self.function_invoking_with(tools, FunctionInvokingOptions::default())
    }

    fn function_invoking_with(
        self,
        tools: impl IntoTools,
        options: FunctionInvokingOptions,
    ) -> Self {
        self.layer(match tools.into_tools() {
            Ok(tools) => FunctionInvokingChatClient::layer(tools, options),
            Err(fault) => ChatClientLayer::fallible::<FunctionInvokingChatClient>(
                "function_invoking",
                LayerPlacement::Loop,
                |_| Err(fault),
            ),
        })
    }

    fn approving(self, handler: impl IApprovalHandler + 'static) -> Self {
        self.layer(ApprovingChatClient::layer(handler))
    }

    fn logging(self) -> Self {
        self.layer(LoggingChatClient::layer())
    }

    fn logging_with(
        self,
        configure: impl FnOnce(LoggingChatClient) -> LoggingChatClient + Send + 'static,
    ) -> Self {
        self.layer(LoggingChatClient::layer_with(configure))
    }

    fn configuring(self, defaults: ChatClientRunOptions) -> Self {
        self.layer(ConfiguringChatClient::layer(defaults))
    }

    fn configuring_with(
        self,
        defaults: ChatClientRunOptions,
        overrides: ChatClientRunOptions,
    ) -> Self {
        self.layer(ConfiguringChatClient::layer_with_overrides(
            defaults, overrides,
        ))
    }
}

#[cfg(test)]
mod tests;
