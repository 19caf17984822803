//! Limits and policies of the loop, with their defaults.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{ChatClientRunOptions, IRunStore, InMemoryRunStore, RunId};
use raf_tools::{ExecutionOptions, IToolSource, ToolRegistry};

use super::hooks::IRunHook;
use super::policy::IApprovalPolicy;

/// Limits and policies of a [`FunctionInvokingChatClient`](crate::FunctionInvokingChatClient).
///
/// Of each limit N is tolerated and N + 1 ends the leg. Limits are checked before a request and
/// before a body, so nothing overshoots by a batch.
///
/// | option | default | what ends the leg, or happens |
/// |---|---|---|
/// | `max_rounds` | 10 model requests | `MaxRounds` |
/// | `max_failed_rounds` | 3 in a row with an error result | `ToolRetryLimit` |
/// | `max_invalid_calls_per_tool` | off, in a row | `ToolRetryLimit` |
/// | `max_unknown_calls_per_tool` | off, in a row | `ToolRetryLimit` |
/// | `max_failed_calls_per_tool` | off, in a row | `ToolRetryLimit` |
/// | `max_calls` | off, per run | `Budget(Calls)`; calls over it are skipped |
/// | `max_calls_per_turn` | off, since the last message of the user | `Budget(Calls)` |
/// | `max_calls_per_tool` | off, per run | calls over it are skipped, the run goes on |
/// | `max_wall_time` | off, pauses not counted | `Budget(WallTime)` |
/// | `no_progress_rounds` | 3 identical rounds | `NoProgress`; 0 is off |
/// | `wrap_up` | off | the last round asks for an answer without tools |
/// | `nudge_empty` | off | an empty reply is asked again once |
/// | `keep_forcing` | off | a forced tool choice holds for one request |
/// | `hold_whole_batch` | off | one gated call holds its ungated siblings too |
/// | `new_message_policy` | supersede | or reject a message while calls are pending |
/// | `foreign_call_policy` | fill as cancelled | or reject a conversation that ends in unknown calls |
/// | `run_store` | in memory, 10,000 runs, 24 hours | |
/// | `approval_policy` | none | decides before people do |
/// | `hooks` | none | `Terminated(Hook)` if one says stop |
/// | `additional_tools` | none | can be called; the model is not told of them |
/// | `tool_sources` | none | asked before each request |
/// | `execution.mode` | parallel | |
/// | `execution.max_concurrency` | 16 bodies at once | |
/// | `execution.deadline` | 60 s a call | `timed_out` |
/// | `execution.grace` | 2 s after a cancel | `cancelled`, reported as abandoned |
/// | `execution.max_result_bytes` | 64 KiB a result | cut with a notice |
/// | `execution.error_policy` | to the model | or fail fast: `Terminated(FailFast)` |
/// | `execution.unknown_tools` | to the model | or stop: `Terminated(UnknownTool)` |
/// | `execution.detailed_errors` | off | or the model reads every error's full text |
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent options, each with its setter"
)]
pub struct FunctionInvokingOptions {
    /// The most model requests of a run.
    pub max_rounds: u32,
    /// The most rounds in a row that hold an error result.
    pub max_failed_rounds: Option<u32>,
    /// The most calls in a row of one tool with invalid arguments.
    pub max_invalid_calls_per_tool: Option<u32>,
    /// The most calls in a row of one unknown name.
    pub max_unknown_calls_per_tool: Option<u32>,
    /// The most calls in a row of one tool that fail.
    pub max_failed_calls_per_tool: Option<u32>,
    /// The most calls of a run.
    pub max_calls: Option<u32>,
    /// The most calls since the last message of the user.
    pub max_calls_per_turn: Option<u32>,
    /// The most calls of one tool in a run.
    pub max_calls_per_tool: Option<u32>,
    /// The longest time that a run may work. Looked at before a request, and before
    /// each body of a batch that has not started.
    pub max_wall_time: Option<Duration>,
    /// How many identical rounds end the run; 0 is off.
    pub no_progress_rounds: u32,
    /// Whether the last round asks for an answer: tool choice none, declarations kept. Also grants
    /// one such request when a failure limit ends the run.
    pub wrap_up: bool,
    /// Whether an empty reply is asked again once.
    pub nudge_empty: bool,
    /// Whether a forced tool choice holds for every request instead of the first of a turn.
    pub keep_forcing: bool,
    /// Whether one gated call holds its ungated siblings too, instead of gated calls alone.
    pub hold_whole_batch: bool,
    /// What a new message of the user means while calls are pending.
    pub new_message_policy: NewMessagePolicy,
    /// What calls without results mean of which there is no record.
    pub foreign_call_policy: ForeignCallPolicy,
    /// Where records of paused runs are kept. A store in the run's options takes its place.
    pub run_store: Arc<dyn IRunStore>,
    /// How long a request for approval may be answered: a later yes is refused as stale, and a store that
    /// lasts settles the call as cancelled. Default: as long as the run is kept.
    pub approval_lifetime: Option<Duration>,
    /// What decides before people do.
    pub approval_policy: Option<Arc<dyn IApprovalPolicy>>,
    /// What looks into a run, and may change, veto or end it.
    pub hooks: Vec<Arc<dyn IRunHook>>,
    /// How tools are run.
    pub execution: ExecutionOptions,
    /// Tools that can be called and that the model is not told of.
    pub additional_tools: ToolRegistry,
    /// Further sources of tools, asked before each request.
    pub tool_sources: Vec<Arc<dyn IToolSource>>,
}

impl Default for FunctionInvokingOptions {
    fn default() -> Self {
        Self {
            max_rounds: 10,
            max_failed_rounds: Some(3),
            max_invalid_calls_per_tool: None,
            max_unknown_calls_per_tool: None,
            max_failed_calls_per_tool: None,
            max_calls: None,
            max_calls_per_turn: None,
            max_calls_per_tool: None,
            max_wall_time: None,
            no_progress_rounds: 3,
            wrap_up: false,
            nudge_empty: false,
            keep_forcing: false,
            hold_whole_batch: false,
            new_message_policy: NewMessagePolicy::default(),
            foreign_call_policy: ForeignCallPolicy::default(),
            run_store: Arc::new(InMemoryRunStore::new()),
            approval_lifetime: None,
            approval_policy: None,
            hooks: Vec::new(),
            execution: ExecutionOptions::default(),
            additional_tools: ToolRegistry::new(),
            tool_sources: Vec::new(),
        }
    }
}

impl FunctionInvokingOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most model requests of a run; at least one.
    pub fn with_max_rounds(mut self, rounds: u32) -> Self {
        self.max_rounds = rounds.max(1);
        self
    }

    /// Sets the most rounds in a row that hold an error result; `None` is off.
    pub fn with_max_failed_rounds(mut self, rounds: impl Into<Option<u32>>) -> Self {
        self.max_failed_rounds = rounds.into();
        self
    }

    /// Sets the most calls in a row of one tool with invalid arguments; `None` is off.
    pub fn with_max_invalid_calls_per_tool(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.max_invalid_calls_per_tool = calls.into();
        self
    }

    /// Sets the most calls in a row of one unknown name; `None` is off.
    pub fn with_max_unknown_calls_per_tool(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.max_unknown_calls_per_tool = calls.into();
        self
    }

    /// Sets the most calls in a row of one tool that fail; `None` is off.
    pub fn with_max_failed_calls_per_tool(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.max_failed_calls_per_tool = calls.into();
        self
    }

    /// Sets the most calls of a run; `None` is off.
    pub fn with_max_calls(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.max_calls = calls.into();
        self
    }

    /// Sets the most calls since the last message of the user; `None` is off.
    pub fn with_max_calls_per_turn(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.max_calls_per_turn = calls.into();
        self
    }

    /// Sets the most calls of one tool in a run; `None` is off.
    pub fn with_max_calls_per_tool(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.max_calls_per_tool = calls.into();
        self
    }

    /// Sets the longest time that a run may work; `None` is off.
    pub fn with_max_wall_time(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.max_wall_time = time.into();
        self
    }

    /// Sets how many identical rounds end the run; 0 is off.
    pub fn with_no_progress_rounds(mut self, rounds: u32) -> Self {
        self.no_progress_rounds = rounds;
        self
    }

    /// Sets whether the last round asks for an answer without tools.
    pub fn with_wrap_up(mut self, wrap_up: bool) -> Self {
        self.wrap_up = wrap_up;
        self
    }

    /// Sets whether an empty reply is asked again once.
    pub fn with_nudge_empty(mut self, nudge: bool) -> Self {
        self.nudge_empty = nudge;
        self
    }

    /// Sets whether a forced tool choice holds for every request.
    pub fn with_keep_forcing(mut self, keep: bool) -> Self {
        self.keep_forcing = keep;
        self
    }

    /// Sets whether one gated call holds its ungated siblings too.
    pub fn with_hold_whole_batch(mut self, hold: bool) -> Self {
        self.hold_whole_batch = hold;
        self
    }

    /// Sets what a new message of the user means while calls are pending.
    pub fn with_new_message_policy(mut self, policy: NewMessagePolicy) -> Self {
        self.new_message_policy = policy;
        self
    }

    /// Sets what calls without results mean of which there is no record.
    pub fn with_foreign_call_policy(mut self, policy: ForeignCallPolicy) -> Self {
        self.foreign_call_policy = policy;
        self
    }

    /// Sets where records of paused runs are kept.
    pub fn with_run_store(mut self, store: Arc<dyn IRunStore>) -> Self {
        self.run_store = store;
        self
    }

    /// Sets how long a request for approval may be answered; `None` is for as long as its run is kept.
    pub fn with_approval_lifetime(mut self, lifetime: impl Into<Option<Duration>>) -> Self {
        self.approval_lifetime = lifetime.into();
        self
    }

    /// Sets what decides before people do.
    pub fn with_approval_policy(mut self, policy: impl IApprovalPolicy + 'static) -> Self {
        self.approval_policy = Some(Arc::new(policy));
        self
    }

    /// Adds what looks into a run, and may change, veto or end it.
    pub fn with_hook(mut self, hook: impl IRunHook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Sets how tools are run.
    pub fn with_execution(mut self, execution: ExecutionOptions) -> Self {
        self.execution = execution;
        self
    }

    /// Sets the tools that can be called and that the model is not told of.
    pub fn with_additional_tools(mut self, tools: ToolRegistry) -> Self {
        self.additional_tools = tools;
        self
    }

    /// Adds a source of tools that is asked before each request.
    pub fn with_tool_source(mut self, source: impl IToolSource + 'static) -> Self {
        self.tool_sources.push(Arc::new(source));
        self
    }
}

/// What a new message of the user means while calls are pending (contract E7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewMessagePolicy {
    /// The pending calls are settled as superseded, and the message is answered. A late yes is stale.
    #[default]
    Supersede,
    /// The leg ends in an error of kind `Misuse` with the pending list; nothing changes.
    Reject,
}

/// What it means that a conversation ends in calls without results of which there is no record: they
/// are foreign, forged or lost (contract I3). They are never executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignCallPolicy {
    /// The model reads that they were cancelled, and is asked. The default.
    #[default]
    Fill,
    /// The leg ends in an error of kind `Misuse`.
    Reject,
}

/// The name of the agent whose run it is, in the options of the run.
#[derive(Clone, Debug)]
pub(crate) struct AskedBy(pub(crate) String);

/// A run store in the options of one run.
#[derive(Clone, Debug)]
struct RunStoreExtension(Arc<dyn IRunStore>);

/// The id of a run in its options.
#[derive(Clone, Debug)]
pub(super) struct NamedRun(pub(super) RunId);

/// Where records of paused runs are kept, in the options of one run.
pub trait RunStoreOptionsExt: Sized {
    /// Keeps the records of this run here, instead of where the loop's own options say. On resume it
    /// is given again.
    fn with_run_store(self, store: Arc<dyn IRunStore>) -> Self;

    /// Names the run. A new run gets this id. If the store has an open run of this id, the leg goes on
    /// with it: with no messages at all, the conversation comes from the journal of a durable store.
    fn with_run_id(self, run_id: RunId) -> Self;

    /// The id that was given.
    fn run_id(&self) -> Option<RunId>;

    /// The store that was given.
    fn run_store(&self) -> Option<Arc<dyn IRunStore>>;
}

impl RunStoreOptionsExt for ChatClientRunOptions {
    fn with_run_store(self, store: Arc<dyn IRunStore>) -> Self {
        self.with_extension(RunStoreExtension(store))
    }

    fn with_run_id(self, run_id: RunId) -> Self {
        self.with_extension(NamedRun(run_id))
    }

    fn run_id(&self) -> Option<RunId> {
        let extension = self.extensions.get::<NamedRun>()?;
        Some(extension.0.clone())
    }

    fn run_store(&self) -> Option<Arc<dyn IRunStore>> {
        let extension = self.extensions.get::<RunStoreExtension>()?;
        Some(Arc::clone(&extension.0))
    }
}
