//! Who is asked, what they are asked, and what they may say.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, Occurrence, ToolApprovalResponse, ToolCall,
};
use serde_json::Value;

/// What a handler fails with. It is logged; what it was asked about stays open.
pub type HandlerError = Box<dyn StdError + Send + Sync>;

/// Decides about calls that wait, for [`ApprovingChatClient`](crate::ApprovingChatClient).
///
/// `Ok(None)` decides nothing: the call stays open, and the stream ends with the pause. So do an error
/// and a panic, which are logged as well: silence is never a yes. A future is dropped when the run is
/// cancelled or its stream is dropped.
///
/// An async closure or function is a handler too: `Fn(ApprovalRequest) -> impl Future`, whose output is
/// an [`ApprovalAnswer`], an `Option` of it, or a `Result` of either.
#[async_trait]
pub trait IApprovalHandler: Send + Sync {
    /// Decides whether a gated call may run.
    ///
    /// # Errors
    /// Anything: it is logged, and the request stays open.
    async fn decide(
        &self,
        request: &ApprovalRequest,
    ) -> Result<Option<ApprovalAnswer>, HandlerError>;

    /// Answers a question that a tool asks by an interrupt. By default it is left open.
    ///
    /// # Errors
    /// Anything: it is logged, and the question stays open.
    async fn answer(
        &self,
        question: &PendingQuestion,
    ) -> Result<Option<QuestionAnswer>, HandlerError> {
        let _ = question;
        Ok(None)
    }
}

#[async_trait]
impl<F, Fut> IApprovalHandler for F
where
    F: Fn(ApprovalRequest) -> Fut + Send + Sync,
    Fut: Future + Send,
    Fut::Output: IntoApprovalAnswer,
{
    async fn decide(
        &self,
        request: &ApprovalRequest,
    ) -> Result<Option<ApprovalAnswer>, HandlerError> {
        self(request.clone()).await.into_approval_answer()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<H: IApprovalHandler + ?Sized> IApprovalHandler for Arc<H> {
    async fn decide(
        &self,
        request: &ApprovalRequest,
    ) -> Result<Option<ApprovalAnswer>, HandlerError> {
        (**self).decide(request).await
    }

    async fn answer(
        &self,
        question: &PendingQuestion,
    ) -> Result<Option<QuestionAnswer>, HandlerError> {
        (**self).answer(question).await
    }
}

/// What a handler says of a call that waits for a yes.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalAnswer {
    decision: ApprovalDecision,
    remember: Option<ApprovalScope>,
}

impl ApprovalAnswer {
    /// The call may run as it was shown.
    pub fn approve() -> Self {
        Self::new(ApprovalDecision::Approve)
    }

    /// The call may not run; the model is told why. A blank reason counts as none.
    pub fn deny(reason: impl Into<String>) -> Self {
        let reason = Some(reason.into()).filter(|reason| !reason.trim().is_empty());
        Self::new(ApprovalDecision::Deny { reason })
    }

    /// The call may run with these arguments instead. Arguments that do not fit the tool's schema are
    /// refused, and the request stays open.
    pub fn approve_edited(arguments: Value) -> Self {
        Self::new(ApprovalDecision::ApproveEdited { arguments })
    }

    /// Allows like calls from now on.
    pub fn with_remember(mut self, scope: ApprovalScope) -> Self {
        self.remember = Some(scope);
        self
    }

    fn new(decision: ApprovalDecision) -> Self {
        Self {
            decision,
            remember: None,
        }
    }

    /// The answer to that request, bound to the arguments that it showed.
    pub(super) fn respond_to(self, request: &ApprovalRequest) -> ToolApprovalResponse {
        let mut response = ToolApprovalResponse::new(&request.request_id, self.decision)
            .with_arguments(request.arguments.clone());
        response.remember = self.remember;
        response
    }
}

/// What the future of a closure may come to.
pub trait IntoApprovalAnswer {
    /// The answer, if there is one.
    ///
    /// # Errors
    /// What the closure failed with.
    fn into_approval_answer(self) -> Result<Option<ApprovalAnswer>, HandlerError>;
}

impl IntoApprovalAnswer for ApprovalAnswer {
    fn into_approval_answer(self) -> Result<Option<ApprovalAnswer>, HandlerError> {
        Ok(Some(self))
    }
}

impl IntoApprovalAnswer for Option<ApprovalAnswer> {
    fn into_approval_answer(self) -> Result<Option<ApprovalAnswer>, HandlerError> {
        Ok(self)
    }
}

impl<A: IntoApprovalAnswer, E: Into<HandlerError>> IntoApprovalAnswer for Result<A, E> {
    fn into_approval_answer(self) -> Result<Option<ApprovalAnswer>, HandlerError> {
        self.map_err(Into::into)?.into_approval_answer()
    }
}

/// A question of a tool that was interrupted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingQuestion {
    /// The id by which an answer names it.
    pub request_id: String,
    /// The call's place in its run.
    pub occurrence: Occurrence,
    /// The call as the model made it.
    pub call: ToolCall,
    /// Where in the run it was asked: `run/round/position/tool/…`.
    pub address: String,
    /// What the tool says.
    pub information: Value,
}

/// What a handler says to a question of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum QuestionAnswer {
    /// The tool goes on with this.
    Data(Value),
    /// There will be no answer: the call is settled as denied, and the model is told.
    Declined {
        /// Told to the model; blank means none.
        reason: Option<String>,
    },
}

impl QuestionAnswer {
    /// The tool goes on with this.
    pub fn data(data: impl Into<Value>) -> Self {
        Self::Data(data.into())
    }

    /// There will be no answer; a blank reason counts as none.
    pub fn decline(reason: impl Into<String>) -> Self {
        let reason = Some(reason.into()).filter(|reason| !reason.trim().is_empty());
        Self::Declined { reason }
    }

    /// The answer to that question.
    pub(super) fn respond_to(self, question: &PendingQuestion) -> ToolApprovalResponse {
        let decision = match self {
            Self::Data(data) => ApprovalDecision::Resume { data },
            Self::Declined { reason } => ApprovalDecision::Deny { reason },
        };
        ToolApprovalResponse::new(&question.request_id, decision)
    }
}
