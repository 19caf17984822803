//! Who decides before a person does: per tool, by predicate on the arguments, by rule (contract E9).

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use raf_core::ApprovalRule;
use raf_tools::{ReadyCall, ToolArguments, rejection};

/// Decides whether a call runs, is asked about, or is denied, before anybody is asked.
///
/// It is asked once per call when the call is planned, and once more when an approved call is about
/// to run; then it can only tighten to a denial. It must not block. A panic settles that one call as
/// failed.
pub trait IApprovalPolicy: Debug + Send + Sync {
    /// The decision on a call whose arguments have passed the tool's schema.
    fn decide(&self, call: &PolicyCall<'_>) -> PolicyDecision;
}

/// A call as a policy sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PolicyCall<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The arguments, validated.
    pub arguments: &'a ToolArguments,
    /// Whether the tool, or a twin of its name, asks for approval.
    pub requires_approval: bool,
    /// The session, if the run belongs to one.
    pub session_id: Option<&'a str>,
    /// Whether text that nobody vouches for is in the context (contract J2).
    pub untrusted_context: bool,
}

/// What a policy says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyDecision {
    /// As the tool says.
    Inherit,
    /// It runs without being asked about.
    Allow,
    /// A person is asked.
    Ask {
        /// Shown with the request.
        reason: Option<String>,
    },
    /// It does not run.
    Deny {
        /// Told to the model.
        reason: Option<String>,
    },
}

impl<F> IApprovalPolicy for ClosurePolicy<F>
where
    F: Fn(&PolicyCall<'_>) -> PolicyDecision + Send + Sync,
{
    fn decide(&self, call: &PolicyCall<'_>) -> PolicyDecision {
        (self.0)(call)
    }
}

/// A policy from a closure.
pub struct ClosurePolicy<F>(F);

impl<F> Debug for ClosurePolicy<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClosurePolicy(..)")
    }
}

/// Makes a policy of a closure.
pub fn policy_fn<F>(decide: F) -> ClosurePolicy<F>
where
    F: Fn(&PolicyCall<'_>) -> PolicyDecision + Send + Sync,
{
    ClosurePolicy(decide)
}

/// What is known when calls are planned or run after an approval.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyFacts<'a> {
    pub(super) policy: Option<&'a dyn IApprovalPolicy>,
    pub(super) rules: &'a [ApprovalRule],
    /// Calls that were denied in this turn: tool and canonical arguments.
    pub(super) denied: &'a [(String, String)],
    pub(super) session_id: Option<&'a str>,
    pub(super) untrusted_context: bool,
}

/// What holds for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Run,
    Ask(Option<String>),
    Deny(Option<String>),
    Panicked,
}

/// The verdict on a call that is gated or not by its tools.
pub(super) fn judge(ready: &ReadyCall, gated: bool, facts: PolicyFacts<'_>) -> Verdict {
    let asked_again = facts
        .denied
        .iter()
        .any(|(tool, denied)| tool == ready.tool.name() && *denied == canonical(ready));
    if asked_again {
        return Verdict::Deny(Some("this call was already rejected".to_owned()));
    }
    match decide(ready, gated, facts) {
        Ok(PolicyDecision::Allow) => Verdict::Run,
        Ok(PolicyDecision::Ask { reason }) => Verdict::Ask(reason),
        Ok(PolicyDecision::Deny { reason }) => Verdict::Deny(reason),
        Ok(PolicyDecision::Inherit) if !gated || allowed(ready, facts.rules) => Verdict::Run,
        Ok(PolicyDecision::Inherit) => Verdict::Ask(None),
        Err(()) => Verdict::Panicked,
    }
}

/// What the model reads if a policy takes back what a person has approved.
pub(super) fn tightens(ready: &ReadyCall, facts: PolicyFacts<'_>) -> Option<String> {
    match decide(ready, true, facts) {
        Ok(PolicyDecision::Deny { reason }) => Some(rejection(reason.as_deref())),
        Ok(_) => None,
        Err(()) => Some(rejection(Some("the policy failed"))),
    }
}

fn decide(ready: &ReadyCall, gated: bool, facts: PolicyFacts<'_>) -> Result<PolicyDecision, ()> {
    let Some(policy) = facts.policy else {
        return Ok(PolicyDecision::Inherit);
    };
    let call = PolicyCall {
        tool: ready.tool.name(),
        arguments: &ready.arguments,
        requires_approval: gated,
        session_id: facts.session_id,
        untrusted_context: facts.untrusted_context,
    };
    catch_unwind(AssertUnwindSafe(|| policy.decide(&call))).map_err(|_| {
        tracing::error!(tool = ready.tool.name(), "an approval policy panicked");
    })
}

fn allowed(ready: &ReadyCall, rules: &[ApprovalRule]) -> bool {
    rules.iter().any(|rule| {
        rule.tool == ready.tool.name()
            && rule
                .arguments
                .as_deref()
                .is_none_or(|rule| rule == canonical(ready))
    })
}

/// The canonical arguments of a call.
pub(super) fn canonical(ready: &ReadyCall) -> String {
    raf_core::canonical_object(&ready.arguments)
}
