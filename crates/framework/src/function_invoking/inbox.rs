//! Messages that are pushed into a run in flight (contract A5).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raf_core::{ChatClientRunOptions, ChatMessage, Error, MessageRole, MessageSource, Result};

/// A box for messages to a run in flight: a cheap handle, given with the run's options.
///
/// The loop empties it before each model request: a message goes behind the results of the batch
/// that was open when it came, is emitted as an update and is part of the transcript, with the source
/// [`MessageSource::Inbox`]. One that comes while the model writes its last answer gets another
/// request, if the limits allow one more; what they do not allow stays in the box for the next run.
///
/// ```
/// use raf_core::{ChatClientExt, ChatClientRunOptions};
/// use raf_framework::{ChatClientBuilderExt, MessageInbox, MessageInboxOptionsExt};
/// use raf_testing::{Reply, ScriptedChatClient};
/// use raf_tools::ToolRegistry;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> raf_core::Result<()> {
/// let model = ScriptedChatClient::new([Reply::text("Both, then.")]);
/// let agent = model.clone().into_builder().function_invoking(ToolRegistry::new()).build()?;
/// let inbox = MessageInbox::new();
/// inbox.push("And the roof, please.")?; // from anywhere, at any time
/// let options = ChatClientRunOptions::new().with_message_inbox(inbox);
/// agent.get_response(&["Paint the door.".into()], options).await?;
/// assert_eq!(model.requests()[0].lines(), ["U:Paint the door.", "U:And the roof, please."]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct MessageInbox(Arc<Mutex<VecDeque<ChatMessage>>>);

impl MessageInbox {
    /// An empty box.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a message in: of the user, or instructions.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) for a message of the model or of a tool.
    pub fn push(&self, message: impl Into<ChatMessage>) -> Result<()> {
        let message = message.into();
        if matches!(message.role(), MessageRole::Assistant | MessageRole::Tool) {
            return Err(Error::misuse(
                "the message inbox takes messages of the user and instructions: what the model or \
                 a tool says comes from the run itself",
            ));
        }
        let message = message.to_builder().source(MessageSource::Inbox).build();
        self.lock().push_back(message);
        Ok(())
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes everything out.
    pub(super) fn drain(&self) -> Vec<ChatMessage> {
        self.lock().drain(..).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<ChatMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The message inbox of one run, in its options.
pub trait MessageInboxOptionsExt: Sized {
    /// Lets messages be pushed into this run while it is in flight.
    fn with_message_inbox(self, inbox: MessageInbox) -> Self;
}

impl MessageInboxOptionsExt for ChatClientRunOptions {
    fn with_message_inbox(self, inbox: MessageInbox) -> Self {
        self.with_extension(inbox)
    }
}
