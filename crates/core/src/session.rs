//! A conversation that outlives its runs: what is kept of it, who may write, what a reader sees.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::ToolResult;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Occurrence, random_hex};
use crate::message::{ChatMessage, MessageRole};
use crate::normalise::normalise;
use crate::record::{PausedRun, read_form};
use crate::run_store::WriteOutcome;
use crate::session_store::{ISessionStore, InMemorySessionStore};

/// The version of the JSON form that this version writes.
const FORMAT: u32 = 1;

/// One conversation: what an agent reads before a run and writes while it runs.
///
/// # Contract
/// - A write names the revision that it is based on, and is made only if that is the present one.
/// - At most one lease at a time; it is let go when it is dropped.
/// - A session that was never written to is empty, not missing.
#[async_trait]
pub trait ISession: Debug + Send + Sync {
    /// Which session.
    fn id(&self) -> &str;

    /// What is kept now.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn load(&self) -> Result<SessionRecord>;

    /// The right to write, for one run.
    ///
    /// # Errors
    /// [`ErrorKind::BusySession`](crate::ErrorKind::BusySession) if another run has it and the policy
    /// is not to wait; what the store fails with.
    async fn lease(&self, policy: BusyPolicy) -> Result<SessionLease>;

    /// Writes a change on top of a revision.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn write(&self, base: u64, change: SessionChange) -> Result<WriteOutcome>;
}

/// What a run does if another run writes to its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyPolicy {
    /// It fails at once, with [`ErrorKind::BusySession`](crate::ErrorKind::BusySession).
    #[default]
    Refuse,
    /// It waits its turn, first come first served.
    Queue,
}

/// The right to write to one session. It is let go when it is dropped.
pub struct SessionLease(
    #[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>,
);

impl SessionLease {
    /// A lease that lasts as long as this value.
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self(Box::new(guard))
    }
}

impl Debug for SessionLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionLease")
    }
}

/// What is kept of a session. JSON form: the fields by name, with `format`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The version of this form.
    pub format: u32,
    /// Which session.
    pub id: String,
    /// Counts the writes; 0 is a session that was never written to.
    pub revision: u64,
    /// The messages, in the order in which they were written: results in order of completion.
    #[serde(default)]
    pub messages: Vec<ChatMessage>,
    /// What the application keeps with it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The run that waits for the outside, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_run: Option<PausedRun>,
    /// Members that this version does not know: they are written back as they were read.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl SessionRecord {
    /// The JSON form, as stores keep it.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| {
            Error::new(ErrorKind::Store, "a session has no JSON form").with_source(error)
        })
    }

    /// A session from its JSON form. Members that this version does not know are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) with the code `later_format` if a later version
    /// wrote it, with the code `corrupt` if it is no session.
    pub fn from_json(json: &str) -> Result<Self> {
        read_form(json, "session", FORMAT, |record: &Self| record.format)
    }

    /// An empty session.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            format: FORMAT,
            id: id.into(),
            revision: 0,
            messages: Vec::new(),
            metadata: Map::new(),
            paused_run: None,
            unknown: Map::new(),
        }
    }

    /// Lays a change over the record and raises its revision.
    pub fn apply(&mut self, change: SessionChange) {
        self.revision += 1;
        self.messages.extend(change.messages);
        for (name, value) in change.metadata {
            if value.is_null() {
                self.metadata.remove(&name);
            } else {
                self.metadata.insert(name, value);
            }
        }
        if let Some(paused_run) = change.paused_run {
            self.paused_run = paused_run;
        }
    }

    /// The transcript as the loop made it: results in call order. Calls of a run that waits, or of
    /// one that was dropped, may be open; the loop takes it as it is.
    pub fn transcript(&self) -> Vec<ChatMessage> {
        let mut transcript = self.messages.clone();
        let place = |message: &ChatMessage| {
            let result = message.tool_results().next();
            result.and_then(ToolResult::occurrence)
        };
        for results in transcript.chunk_by_mut(|a, b| is_result(a) && is_result(b)) {
            let places: Vec<Option<Occurrence>> = results.iter().map(place).collect();
            if places.len() > 1 && places.iter().all(Option::is_some) {
                results.sort_by_key(place);
            }
        }
        transcript
    }

    /// The conversation for a reader: balanced, each call with one result.
    pub fn history(&self) -> Vec<ChatMessage> {
        normalise(&self.messages)
    }
}

fn is_result(message: &ChatMessage) -> bool {
    message.role() == MessageRole::Tool
}

/// What one write adds to a session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionChange {
    /// Messages to append.
    pub messages: Vec<ChatMessage>,
    /// Metadata to set; null takes a name out.
    pub metadata: Map<String, Value>,
    /// The run that waits from now on; `Some(None)` is none.
    pub paused_run: Option<Option<PausedRun>>,
}

impl SessionChange {
    /// Appends messages.
    pub fn messages(messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Sets an entry of the metadata; null takes it out.
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Says which run waits from now on.
    pub fn with_paused_run(mut self, paused_run: Option<PausedRun>) -> Self {
        self.paused_run = Some(paused_run);
        self
    }
}

/// A session in a store: a cheap handle.
///
/// ```
/// use raf_core::{ChatMessage, ISession, Session, SessionChange};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> raf_core::Result<()> {
/// let session = Session::in_memory();
/// let change = SessionChange::messages([ChatMessage::user("Hi")]).with_metadata("user", "Ada");
/// let _ = session.write(0, change).await?;
/// assert_eq!(session.load().await?.history().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    id: Arc<str>,
    store: Arc<dyn ISessionStore>,
}

impl Session {
    /// The session of this id in a store.
    pub fn new(store: Arc<dyn ISessionStore>, id: impl Into<String>) -> Self {
        Self {
            id: id.into().into(),
            store,
        }
    }

    /// A new session of this process alone, with a random id.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(InMemorySessionStore::new()), random_hex())
    }
}

#[async_trait]
impl ISession for Session {
    fn id(&self) -> &str {
        &self.id
    }

    async fn load(&self) -> Result<SessionRecord> {
        let record = self.store.load(&self.id).await?;
        Ok(record.unwrap_or_else(|| SessionRecord::new(&*self.id)))
    }

    async fn lease(&self, policy: BusyPolicy) -> Result<SessionLease> {
        self.store.lease(&self.id, policy).await
    }

    async fn write(&self, base: u64, change: SessionChange) -> Result<WriteOutcome> {
        self.store.write(&self.id, base, change).await
    }
}
