#![doc = include_str!("../README.md")]

mod builder_ext;
mod configuring;
mod function_invoking;
mod into_tools;
mod logging;

pub use builder_ext::ChatClientBuilderExt;
pub use configuring::ConfiguringChatClient;
pub use function_invoking::{
    ClosurePolicy, FunctionInvokingChatClient, FunctionInvokingOptions, IApprovalPolicy,
    NewMessagePolicy, PolicyCall, PolicyDecision, RunStoreOptionsExt, policy_fn,
};
pub use into_tools::IntoTools;
pub use logging::LoggingChatClient;
