//! What a reply has said so far, as updates that wait to be taken: in one message, which begins with the
//! first of them.

use raf_core::{AgentResponseUpdate, ChatMessage, MessageRole, ResponseFold, ResponseMetadata};

/// The updates that have gathered.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) updates: Vec<AgentResponseUpdate>,
    identity: Option<ResponseMetadata>,
    is_started: bool,
    /// What this turn says, where it may have to be sent back.
    record: Option<ResponseFold>,
}

impl Said {
    /// Nothing said yet. `records` keeps a turn that may have to be sent back.
    pub(crate) fn new(records: bool) -> Self {
        Self {
            record: records.then(ResponseFold::new),
            ..Self::default()
        }
    }

    /// Ids and headers, which come before the message.
    pub(crate) fn identify(&mut self, metadata: ResponseMetadata) {
        if self.is_started {
            return;
        }
        match &mut self.identity {
            Some(identity) => identity.merge(&metadata),
            None => self.identity = Some(metadata),
        }
    }

    /// Whether a message has begun.
    pub(crate) fn is_started(&self) -> bool {
        self.is_started
    }

    /// The message begins, if it has not.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if !self.is_started {
            self.start();
        }
    }

    fn start(&mut self) {
        self.is_started = true;
        let mut message_id = None;
        if let Some(metadata) = self.identity.take() {
            message_id = metadata.response_id.as_deref().map(Box::from);
            self.updates.push(AgentResponseUpdate::ResponseMetadata {
                metadata: Box::new(metadata),
            });
        }
        self.updates.push(AgentResponseUpdate::MessageStart {
            role: MessageRole::Assistant,
            message_id,
        });
    }

    /// Says a part of the message.
    #[inline]
    pub(crate) fn say(&mut self, update: AgentResponseUpdate) {
        self.begin();
        self.updates.push(update);
    }

    /// The updates, to be taken out.
    pub(crate) fn take(&mut self) -> &mut Vec<AgentResponseUpdate> {
        if let Some(record) = &mut self.record {
            for update in &self.updates {
                record.push(update);
            }
        }
        &mut self.updates
    }

    /// The message of the turn that was recorded, after its updates were taken; what follows is recorded
    /// anew.
    pub(crate) fn recorded(&mut self) -> Option<ChatMessage> {
        let mut record = self.record.replace(ResponseFold::new())?;
        record.push(&AgentResponseUpdate::message_end());
        record.messages().last().cloned()
    }
}
