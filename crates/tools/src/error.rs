//! What a tool fails with, and how much of it the model may read.

use std::error::Error as StdError;
use std::fmt;

use raf_core::PendingCall;
use serde_json::Value;

/// In which way a tool failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The arguments pass the schema, yet make no sense. The model reads why.
    InvalidParameters,
    /// The work failed. The model reads why only if the error says so.
    ExecutionFailed,
    /// A right is missing. The model reads why.
    PermissionDenied,
    /// Something that the tool waited for took too long.
    Timeout,
    /// The run must not go on: siblings are cancelled, the leg ends as terminated.
    Fatal,
    /// No tool of this name: what a call of an unknown tool fails with inside its middleware.
    UnknownTool,
    /// The run is to end: said by a middleware.
    Terminate,
    /// The tool gave up because it was cancelled.
    Cancelled,
    /// Not a failure: the call waits for the outside, and is entered again with the answer.
    Interrupted,
    /// Not a failure: the run that the body is could not be kept, and stays open.
    LeftOpen,
}

/// What a tool fails with.
///
/// By default the model reads only text that was written for it ([`ToolError::invalid_parameters`],
/// [`ToolError::tell_model`], [`ToolError::permission_denied`]). Of any other failure it reads a
/// generic text and a correlation id; the detail goes to the log.
#[derive(Debug)]
pub struct ToolError {
    kind: ToolErrorKind,
    message: String,
    model_visible: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
    interrupt: Option<Box<Interrupt>>,
}

/// What a tool that waits says to the outside, and what it wants to find again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interrupt {
    /// For the outside: a question, a form, whatever fits.
    pub information: Value,
    /// State of its own, handed back when it is entered again.
    pub state: Value,
    /// What a run nested in the call waits for; empty if the call asks for itself.
    pub nested: Vec<PendingCall>,
}

impl ToolError {
    fn new(kind: ToolErrorKind, message: impl Into<String>, model_visible: bool) -> Self {
        Self {
            kind,
            message: message.into(),
            model_visible,
            source: None,
            interrupt: None,
        }
    }

    /// The arguments make no sense; the model reads the text.
    pub fn invalid_parameters(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidParameters, message, true)
    }

    /// The work failed. The text goes to the log only.
    pub fn execution_failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::ExecutionFailed, message, false)
    }

    /// The work failed, and the model reads the text: it must hold nothing internal.
    pub fn tell_model(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::ExecutionFailed, message, true)
    }

    /// A right is missing; the model reads the text.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::PermissionDenied, message, true)
    }

    /// Something that the tool waited for took too long. The text goes to the log only.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Timeout, message, false)
    }

    /// The run must not go on. The text goes to the log only.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Fatal, message, false)
    }

    /// No tool of this name; the model reads the text.
    pub fn unknown_tool(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::UnknownTool, message, true)
    }

    /// The run is to end: siblings are cancelled, the leg ends as terminated by a middleware. The
    /// model, should it be asked again later, reads the text.
    pub fn terminate(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Terminate, message, true)
    }

    /// The tool gave up because it was cancelled.
    pub fn cancelled() -> Self {
        Self::new(ToolErrorKind::Cancelled, "cancelled", false)
    }

    /// The call waits for the outside: `information` is for it, `state` for the tool itself when it
    /// is entered again (see [`ToolContext::resumption`](crate::ToolContext::resumption)).
    pub fn interrupt(information: Value, state: Value) -> Self {
        let mut error = Self::new(ToolErrorKind::Interrupted, "waits for the outside", false);
        error.interrupt = Some(Box::new(Interrupt {
            information,
            state,
            nested: Vec::new(),
        }));
        error
    }

    /// A run nested in the call waits for the outside: what it waits for stands in the pending list of
    /// the run around it. Answers to any of that enter the body again, with the
    /// [`ToolApprovalResponse`](raf_core::ToolApprovalResponse)s as a JSON list in
    /// [`ToolContext::resumption`](crate::ToolContext::resumption).
    pub fn interrupt_nested(pending: Vec<PendingCall>, state: Value) -> Self {
        let mut error = Self::interrupt(Value::Null, state);
        if let Some(interrupt) = &mut error.interrupt {
            interrupt.nested = pending;
        }
        error
    }

    /// What keeps the run that the body is has failed: the call comes to no outcome. For tools whose body is
    /// a run with a journal of its own ([`ToolLimits::self_resuming`](crate::ToolLimits::self_resuming)).
    ///
    /// A durable run around it ends with this error and stays open, the call in flight: the leg that takes it
    /// up enters the body again. Where nothing records outcomes it is a failure like any other.
    pub fn left_open(error: raf_core::Error) -> Self {
        Self::new(
            ToolErrorKind::LeftOpen,
            "the run of this call could not be kept",
            false,
        )
        .with_source(error)
    }

    /// Any error as a failure whose text goes to the log only; a `ToolError` inside is taken as it
    /// is.
    pub fn from_error(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        match error.into().downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => {
                let mut error = Self::execution_failed(other.to_string());
                error.source = Some(other);
                error
            }
        }
    }

    /// Sets the error below this one. Log only.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// In which way it failed.
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the model may read the text.
    pub fn is_model_visible(&self) -> bool {
        self.model_visible
    }

    /// What a tool that waits says.
    pub fn as_interrupt(&self) -> Option<&Interrupt> {
        self.interrupt.as_deref()
    }

    /// What a tool that waits says; the error itself if it is another one.
    pub(crate) fn into_interrupt(mut self) -> Result<Interrupt, Self> {
        self.interrupt.take().map(|it| *it).ok_or(self)
    }

    /// What has failed to keep the run that the body is.
    pub(crate) fn as_left_open(&self) -> Option<&raf_core::Error> {
        let source = self
            .source
            .as_deref()
            .filter(|_| self.kind == ToolErrorKind::LeftOpen)?;
        source.downcast_ref()
    }

    /// The text and those of all errors below, for the log.
    pub fn detail(&self) -> String {
        let mut detail = self.message.clone();
        let mut below = StdError::source(self);
        while let Some(error) = below {
            let text = error.to_string();
            if !detail.ends_with(&text) {
                detail.push_str(": ");
                detail.push_str(&text);
            }
            below = error.source();
        }
        detail
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ToolErrorKind::InvalidParameters => "invalid parameters",
            ToolErrorKind::ExecutionFailed => "execution failed",
            ToolErrorKind::PermissionDenied => "permission denied",
            ToolErrorKind::Timeout => "timeout",
            ToolErrorKind::Fatal => "fatal",
            ToolErrorKind::UnknownTool => "unknown tool",
            ToolErrorKind::Terminate => "terminated",
            ToolErrorKind::Cancelled => return f.write_str("cancelled"),
            ToolErrorKind::Interrupted => return f.write_str("waits for the outside"),
            ToolErrorKind::LeftOpen => "left open",
        };
        write!(f, "{kind}: {}", self.message)
    }
}

impl StdError for ToolError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_ref()
            .map(|source| &**source as &(dyn StdError + 'static))
    }
}
