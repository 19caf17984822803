#![doc = include_str!("../README.md")]

mod agent;
mod approving;
mod builder_ext;
mod configuring;
mod function_invoking;
mod into_tools;
mod logging;
mod sealed;
mod workers;

pub use agent::{
    AgentConfig, AgentConfigBuilder, AgentRequest, AgentRun, AgentRuntime, AgentTool,
    ContextChatClient, ContextOutcome, ContextRequest, IContextProvider, ProvidedContext,
    ProviderFailure,
};
pub use approving::{
    ApprovalAnswer, ApprovingChatClient, HandlerError, IApprovalHandler, IntoApprovalAnswer,
    PendingQuestion, QuestionAnswer,
};
pub use builder_ext::ChatClientBuilderExt;
pub use configuring::ConfiguringChatClient;
pub use function_invoking::{
    ClosurePolicy, ForeignCallPolicy, FunctionInvokingChatClient, FunctionInvokingOptions,
    HookBatch, HookDecision, HookReply, HookRequest, HookResults, IApprovalPolicy, IRunHook,
    MessageInbox, MessageInboxOptionsExt, NewMessagePolicy, PolicyCall, PolicyDecision,
    RunStoreOptionsExt, policy_fn,
};
pub use into_tools::IntoTools;
pub use logging::LoggingChatClient;
pub use sealed::{PausedRunSealer, SealFault, SealedPausedRun, SealingKey, SealingKeys};
pub use workers::{
    AgentResumer, ClientResumer, IRunResumer, PassOptions, ResumedRun, RunProgress, WorkerOptions,
    resume_open_runs, run_worker,
};
