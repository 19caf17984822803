//! What stands in the requests of a run beside its transcript: instructions, messages and tools of
//! context providers. It travels in the options, from the layer that asks the providers to the loop.

use std::sync::Arc;

use raf_core::ChatMessage;
use raf_tools::IToolSource;

/// The context of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestContext {
    /// In front of the conversation, in each request; in no transcript.
    pub(crate) front: Vec<ChatMessage>,
    /// Appended to the conversation when a new turn begins: emitted, and part of the transcript.
    pub(crate) stored: Vec<ChatMessage>,
    /// Asked before each request, behind the tools of the agent and of the run.
    pub(crate) tools: Vec<Arc<dyn IToolSource>>,
}
