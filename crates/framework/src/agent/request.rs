//! What an agent is asked.

use std::sync::Arc;

use raf_core::{ChatClientRunOptions, ChatMessage, ISession, ToolApprovalResponse};

use crate::function_invoking::{MessageInbox, MessageInboxOptionsExt};

/// One request to an agent: new messages or answers, the session that they belong to, options of the
/// run. A text or a message is one.
///
/// ```
/// use raf_core::Session;
/// use raf_framework::AgentRequest;
///
/// let session = Session::in_memory();
/// let request = AgentRequest::new("And tomorrow?").in_session(session.clone());
/// let answers = AgentRequest::answers([]).in_session(session);
/// ```
#[derive(Clone, Debug, Default)]
pub struct AgentRequest {
    pub(super) messages: Vec<ChatMessage>,
    pub(super) session: Option<Arc<dyn ISession>>,
    pub(super) options: ChatClientRunOptions,
}

impl AgentRequest {
    /// A message of the user.
    pub fn new(message: impl Into<ChatMessage>) -> Self {
        Self::messages([message.into()])
    }

    /// Messages: what is new with a session, else the whole conversation.
    pub fn messages(messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Answers to what a run waits for, and nothing new. Without a session, set the whole conversation
    /// with [`with_messages`](Self::with_messages).
    pub fn answers(answers: impl IntoIterator<Item = ToolApprovalResponse>) -> Self {
        let options = ChatClientRunOptions::new().with_tool_approval_responses(answers);
        Self::default().with_options(options)
    }

    /// Sets the messages.
    pub fn with_messages(mut self, messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        self.messages = messages.into_iter().collect();
        self
    }

    /// Goes on with a session, and writes to it.
    pub fn in_session(self, session: impl ISession + 'static) -> Self {
        self.in_shared_session(Arc::new(session))
    }

    /// Goes on with a session, shared.
    pub fn in_shared_session(mut self, session: Arc<dyn ISession>) -> Self {
        self.session = Some(session);
        self
    }

    /// Sets the options of this run; they win over those of the agent. Answers given before are kept
    /// if these bring none.
    pub fn with_options(mut self, mut options: ChatClientRunOptions) -> Self {
        if options.tool_approval_responses.is_empty() {
            options.tool_approval_responses =
                std::mem::take(&mut self.options.tool_approval_responses);
        }
        self.options = options;
        self
    }

    /// Lets messages be pushed into the run while it is in flight.
    pub fn with_inbox(mut self, inbox: MessageInbox) -> Self {
        self.options = self.options.with_message_inbox(inbox);
        self
    }
}

impl From<&str> for AgentRequest {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for AgentRequest {
    fn from(text: String) -> Self {
        Self::new(ChatMessage::user(text))
    }
}

impl From<ChatMessage> for AgentRequest {
    fn from(message: ChatMessage) -> Self {
        Self::new(message)
    }
}

impl From<Vec<ChatMessage>> for AgentRequest {
    fn from(messages: Vec<ChatMessage>) -> Self {
        Self::messages(messages)
    }
}
