//! The message: an opaque, cheap, immutable handle.

mod rendering;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::content::{Content, ExtraFields, ToolCall, ToolResult};
use crate::identity::RunId;

pub use rendering::RenderKey;
use rendering::Renderings;

/// Who speaks. JSON form: `system`, `developer`, `user`, `assistant`, `tool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageRole {
    /// Instructions.
    System,
    /// Instructions, where a provider tells them from the system's own.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
}

/// Where a message came from. JSON form: snake case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageSource {
    /// Given by the caller of the run. The default.
    #[default]
    Caller,
    /// Loaded from a session.
    History,
    /// Added by a context provider for one request.
    ContextProvider,
    /// Written by the model.
    Model,
    /// The result of a call.
    Tool,
    /// Pushed into a run in flight.
    Inbox,
    /// Added by raf itself, for example the nudge after an empty reply.
    Framework,
}

/// Whether a message is whole. JSON form: snake case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// Nothing is missing. The default.
    #[default]
    Complete,
    /// The reply was cut: by a cancel, a failing stream, a limit.
    Incomplete,
}

/// One message of a conversation: an immutable handle that costs a pointer to clone.
///
/// JSON form: `{"role": …, "content": [parts]}` and, where set, `name`, `message_id`, `source`,
/// `status`; a `content` that is a plain string is read as one text part; unknown fields survive a
/// round trip.
///
/// ```
/// use raf_core::{ChatMessage, MessageRole};
///
/// let message = ChatMessage::user("What is the time?");
/// assert_eq!(message.role(), MessageRole::User);
/// assert_eq!(message.text(), "What is the time?");
/// let json = serde_json::to_string(&message).unwrap();
/// assert_eq!(json, r#"{"role":"user","content":[{"type":"text","text":"What is the time?"}]}"#);
/// assert_eq!(serde_json::from_str::<ChatMessage>(&json).unwrap(), message);
/// ```
#[derive(Clone)]
pub struct ChatMessage(Arc<Inner>);

struct Inner {
    data: Data,
    is_plain_text: bool,
    rendered: Renderings,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Data {
    role: MessageRole,
    #[serde(default, deserialize_with = "parts_or_text")]
    content: Vec<Content>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    source: MessageSource,
    #[serde(default, skip_serializing_if = "is_default")]
    status: MessageStatus,
    #[serde(flatten)]
    extra: ExtraFields,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn parts_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum PartsOrText {
        Text(String),
        Parts(Vec<Content>),
        Null,
    }
    Ok(match PartsOrText::deserialize(deserializer)? {
        PartsOrText::Text(text) => vec![Content::text(text)],
        PartsOrText::Parts(parts) => parts,
        PartsOrText::Null => Vec::new(),
    })
}

const PAUSED_RUN_ID: &str = "raf_run_id";
const PAUSED_ROUND: &str = "raf_round";

impl ChatMessage {
    /// A message of a role with these parts.
    pub fn new(role: MessageRole, content: impl IntoIterator<Item = Content>) -> Self {
        Self::builder(role).contents(content).build()
    }

    /// Instructions.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(MessageRole::System, [Content::text(text)])
    }

    /// What the person says.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(MessageRole::User, [Content::text(text)])
    }

    /// What the model said.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(MessageRole::Assistant, [Content::text(text)])
    }

    /// What the model said when it asked for calls.
    pub fn assistant_calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::new(
            MessageRole::Assistant,
            calls.into_iter().map(Content::ToolCall),
        )
    }

    /// The result of a call.
    pub fn tool(result: ToolResult) -> Self {
        Self::builder(MessageRole::Tool)
            .content(Content::ToolResult(result))
            .source(MessageSource::Tool)
            .build()
    }

    /// A message with more than the usual fields.
    pub fn builder(role: MessageRole) -> ChatMessageBuilder {
        ChatMessageBuilder(Data {
            role,
            content: Vec::new(),
            name: None,
            message_id: None,
            source: MessageSource::default(),
            status: MessageStatus::default(),
            extra: ExtraFields::new(),
        })
    }

    /// The same message with some fields changed: copy on write.
    pub fn to_builder(&self) -> ChatMessageBuilder {
        ChatMessageBuilder(self.0.data.clone())
    }

    /// Who speaks.
    pub fn role(&self) -> MessageRole {
        self.0.data.role
    }

    /// The parts, in order.
    pub fn contents(&self) -> &[Content] {
        &self.0.data.content
    }

    /// Whether it holds text parts alone, and they say something. Known from the start.
    pub fn is_plain_text(&self) -> bool {
        self.0.is_plain_text
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        self.contents()
            .iter()
            .filter_map(Content::as_text)
            .collect()
    }

    /// The calls, in order; the index is the call's position.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.contents().iter().filter_map(Content::as_tool_call)
    }

    /// The results, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.contents().iter().filter_map(Content::as_tool_result)
    }

    /// The speaker's name, where several share a role.
    pub fn name(&self) -> Option<&str> {
        self.0.data.name.as_deref()
    }

    /// The provider's id of the message.
    pub fn message_id(&self) -> Option<&str> {
        self.0.data.message_id.as_deref()
    }

    /// Where it came from.
    pub fn source(&self) -> MessageSource {
        self.0.data.source
    }

    /// Whether it is whole.
    pub fn status(&self) -> MessageStatus {
        self.0.data.status
    }

    /// Fields that this version does not know.
    pub fn extra(&self) -> &ExtraFields {
        &self.0.data.extra
    }

    /// The run whose calls in this message wait for the outside: set by the fold when a leg pauses.
    /// A hint where the record is to be found, never the authority. JSON form: `raf_run_id`.
    pub fn paused_run_id(&self) -> Option<RunId> {
        let id = self.0.data.extra.get(PAUSED_RUN_ID)?.as_str()?;
        Some(RunId::from(id))
    }

    /// The round of that run to which the calls belong. JSON form: `raf_round`.
    pub fn paused_round(&self) -> Option<u32> {
        let round = self.0.data.extra.get(PAUSED_ROUND)?.as_u64()?;
        u32::try_from(round).ok()
    }

    /// Whether two handles are the same message, by address.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The message's form in one provider's dialect, rendered once and kept with the message.
    ///
    /// Only a form that depends on nothing but this message and the dialect may be kept. The first
    /// key is kept, and the three others used last; a message is shared by all its clones.
    pub fn rendered(&self, key: RenderKey, render: impl FnOnce(&Self) -> Arc<str>) -> Arc<str> {
        self.0.rendered.get(key, || render(self))
    }
}

/// Builds a [`ChatMessage`].
#[derive(Clone, Debug)]
pub struct ChatMessageBuilder(Data);

impl ChatMessageBuilder {
    /// Adds a part.
    pub fn content(mut self, part: impl Into<Content>) -> Self {
        // Nearly all messages have one part.
        if self.0.content.is_empty() {
            self.0.content.reserve_exact(1);
        }
        self.0.content.push(part.into());
        self
    }

    /// Adds parts.
    pub fn contents(mut self, parts: impl IntoIterator<Item = Content>) -> Self {
        let parts = parts.into_iter();
        if self.0.content.is_empty() {
            self.0.content.reserve_exact(parts.size_hint().0);
        }
        self.0.content.extend(parts);
        self
    }

    /// Replaces all parts.
    pub fn replace_contents(mut self, parts: Vec<Content>) -> Self {
        self.0.content = parts;
        self
    }

    /// Sets the speaker's name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.name = Some(name.into());
        self
    }

    /// Sets the provider's id.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.0.message_id = Some(id.into());
        self
    }

    /// Says where it came from.
    pub fn source(mut self, source: MessageSource) -> Self {
        self.0.source = source;
        self
    }

    /// Says whether it is whole.
    pub fn status(mut self, status: MessageStatus) -> Self {
        self.0.status = status;
        self
    }

    /// Adds a field that raf does not know.
    pub fn extra(mut self, name: impl Into<String>, value: serde_json::Value) -> Self {
        self.0.extra.insert(name.into(), value);
        self
    }

    /// Says which run waits for the outside in this message.
    pub fn paused_run_id(self, run_id: &RunId) -> Self {
        self.extra(PAUSED_RUN_ID, run_id.as_str().into())
    }

    /// Says to which round of that run its calls belong.
    pub fn paused_round(self, round: u32) -> Self {
        self.extra(PAUSED_ROUND, round.into())
    }

    /// The message.
    pub fn build(self) -> ChatMessage {
        let parts = &self.0.content;
        let is_text = |part: &Content| matches!(part, Content::Text(_));
        ChatMessage(Arc::new(Inner {
            is_plain_text: parts.iter().all(is_text) && !parts.iter().all(Content::is_empty),
            data: self.0,
            rendered: Renderings::default(),
        }))
    }
}

impl PartialEq for ChatMessage {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0.data == other.0.data
    }
}

impl fmt::Debug for ChatMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.data.fmt(f)
    }
}

impl From<&str> for ChatMessage {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl Serialize for ChatMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.data.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ChatMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(ChatMessageBuilder(Data::deserialize(deserializer)?).build())
    }
}
