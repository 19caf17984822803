//! From the end of a body to its result: outcome, what the model reads, what the log holds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use raf_core::{
    Content, Error, SkipReason, TerminationCause, ToolErrorClass, ToolOutcome, ToolResult,
    ToolResultBuilder, TrustLabel, canonical_json, correlation_id,
};
use serde_json::Value;

use super::body::{BodyEnd, BodyValue, panic_message};
use super::digest::ResultDigest;
use super::open_batch::edited_note;
use super::options::ExecutionOptions;
use super::prepare::ReadyCall;
use crate::error::{Interrupt, ToolError, ToolErrorKind};
use crate::handlers::RenderingCall;

/// A body's end as a result.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) result: ToolResult,
    /// The value before it was rendered, for telling equal results apart from unequal ones.
    pub(super) digest: ResultDigest,
    /// Why the run is to end, if it is.
    pub(super) termination: Option<TerminationCause>,
}

/// What came of a body: a result, or an interrupt, or nothing yet.
#[derive(Debug)]
pub(super) enum BodyOutcome {
    Settled(Rendered),
    Interrupted(Interrupt),
    LeftOpen(Error),
}

/// Why a batch was told to stop, as far as it decides the outcome of a body that gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopCause {
    /// The run was cancelled, or its deadline passed.
    Cancelled,
    /// A sibling ended the run.
    Terminated,
}

impl StopCause {
    /// The outcome of a call whose body was not entered.
    pub(super) const fn not_started(self) -> ToolOutcome {
        match self {
            Self::Cancelled => ToolOutcome::Cancelled { started: false },
            Self::Terminated => ToolOutcome::skipped(SkipReason::Terminated),
        }
    }
}

/// Renders the end of a body. Internal detail goes to the log under the correlation id.
pub(super) fn render(
    ready: &ReadyCall,
    end: BodyEnd,
    entered: bool,
    options: &ExecutionOptions,
) -> BodyOutcome {
    let mut outcome = outcome(ready, end, entered, options);
    if let (BodyOutcome::Settled(rendered), true) = (&mut outcome, ready.edited && entered) {
        let mut content = rendered.result.content().to_vec();
        content.push(Content::text(edited_note(ready)));
        rendered.result = rendered.result.to_builder().content(content).build();
    }
    outcome
}

fn outcome(
    ready: &ReadyCall,
    end: BodyEnd,
    started: bool,
    options: &ExecutionOptions,
) -> BodyOutcome {
    let settled = |outcome, text: Option<String>| {
        let text = text.unwrap_or_else(|| outcome_text(outcome));
        BodyOutcome::Settled(Rendered {
            digest: ResultDigest::of(outcome, ""),
            result: framework_result(ready, outcome).text(text).build(),
            termination: None,
        })
    };
    match end {
        BodyEnd::Returned(Ok(value)) => BodyOutcome::Settled(render_value(ready, value, options)),
        BodyEnd::Returned(Err(error)) => match error.into_interrupt() {
            Ok(interrupt) => BodyOutcome::Interrupted(interrupt),
            Err(error) => BodyOutcome::Settled(render_error(ready, &error, started, options)),
        },
        BodyEnd::Panicked(message) => {
            let id = correlation_id();
            tracing::error!(
                correlation_id = %id,
                tool = ready.tool.name(),
                call_id = ready.call.id(),
                panic = %message,
                "a tool panicked"
            );
            let outcome = ToolOutcome::Error(ToolErrorClass::Panicked);
            let text = generic(ready, "failed unexpectedly", &id, &message, options);
            BodyOutcome::Settled(Rendered {
                digest: ResultDigest::of(outcome, &message),
                result: framework_result(ready, outcome)
                    .text(text)
                    .correlation_id(id)
                    .build(),
                termination: None,
            })
        }
        BodyEnd::LeftOpen(error) => BodyOutcome::LeftOpen(error),
        BodyEnd::TimedOut => settled(
            ToolOutcome::Error(ToolErrorClass::TimedOut { started }),
            None,
        ),
        BodyEnd::NeverEntered => settled(ToolOutcome::Cancelled { started: false }, None),
        BodyEnd::Abandoned => settled(ToolOutcome::Cancelled { started }, None),
    }
}

fn outcome_text(outcome: ToolOutcome) -> String {
    outcome.default_text().to_owned()
}

fn result(ready: &ReadyCall, outcome: ToolOutcome) -> ToolResultBuilder {
    let builder = ToolResult::builder(ready.call.id(), outcome)
        .name(ready.call.name())
        .occurrence(ready.occurrence)
        .trust(ready.tool.tool().trust());
    if ready.edited || ready.rewritten {
        builder.executed_arguments(Value::Object(ready.arguments.clone()))
    } else {
        builder
    }
}

fn framework_result(ready: &ReadyCall, outcome: ToolOutcome) -> ToolResultBuilder {
    result(ready, outcome).trust(TrustLabel::Framework)
}

fn generic(
    ready: &ReadyCall,
    what: &str,
    correlation_id: &str,
    detail: &str,
    options: &ExecutionOptions,
) -> String {
    let name = ready.tool.name();
    if options.detailed_errors {
        format!("The tool '{name}' {what}: {detail}")
    } else {
        format!("The tool '{name}' {what} (error id {correlation_id}).")
    }
}

/// The class of an error of a tool or of what is around it.
pub(super) const fn error_class(kind: ToolErrorKind, started: bool) -> ToolErrorClass {
    match kind {
        ToolErrorKind::InvalidParameters => ToolErrorClass::InvalidArguments,
        ToolErrorKind::PermissionDenied => ToolErrorClass::PermissionDenied,
        ToolErrorKind::Timeout => ToolErrorClass::TimedOut { started },
        ToolErrorKind::UnknownTool => ToolErrorClass::UnknownTool,
        ToolErrorKind::ExecutionFailed
        | ToolErrorKind::Fatal
        | ToolErrorKind::Terminate
        | ToolErrorKind::Cancelled
        | ToolErrorKind::Interrupted
        | ToolErrorKind::LeftOpen => ToolErrorClass::Failed,
    }
}

fn render_error(
    ready: &ReadyCall,
    error: &ToolError,
    started: bool,
    options: &ExecutionOptions,
) -> Rendered {
    if error.kind() == ToolErrorKind::Cancelled {
        let outcome = ToolOutcome::Cancelled { started };
        return Rendered {
            digest: ResultDigest::of(outcome, ""),
            result: framework_result(ready, outcome)
                .text(outcome.default_text())
                .build(),
            termination: None,
        };
    }
    let class = error_class(error.kind(), started);
    let outcome = ToolOutcome::Error(class);
    let detail = error.detail();
    let builder = if error.is_model_visible() {
        // The tool's own words: capped like any result.
        let text = if options.detailed_errors {
            &detail
        } else {
            error.message()
        };
        capped(
            ready,
            outcome,
            result(ready, outcome),
            vec![Content::text(text)],
            options,
        )
    } else {
        let id = correlation_id();
        tracing::error!(
            correlation_id = %id,
            tool = ready.tool.name(),
            call_id = ready.call.id(),
            error = %detail,
            "a tool failed"
        );
        let what = match class {
            ToolErrorClass::TimedOut { .. } => "took too long",
            _ => "failed",
        };
        let text = generic(ready, what, &id, &detail, options);
        let cap = vec![Content::text(text)];
        let builder = framework_result(ready, outcome);
        capped(ready, outcome, builder, cap, options).correlation_id(id)
    };
    Rendered {
        result: builder.build(),
        digest: ResultDigest::of(outcome, &detail),
        termination: match error.kind() {
            ToolErrorKind::Fatal => Some(TerminationCause::FatalError),
            ToolErrorKind::Terminate => Some(TerminationCause::Middleware),
            _ => None,
        },
    }
}

/// A value as parts that are never empty, so that nothing, null and empty stay distinguishable
/// (contract D9).
fn render_value(ready: &ReadyCall, value: BodyValue, options: &ExecutionOptions) -> Rendered {
    let (parts, digest) = match value {
        BodyValue::Void => (
            vec![Content::text(ToolOutcome::Ok.default_text())],
            ResultDigest::of(ToolOutcome::Ok, "void"),
        ),
        BodyValue::Text(text) => {
            let digest = ResultDigest::of(ToolOutcome::Ok, &text);
            (vec![Content::text(text_or_note(text))], digest)
        }
        BodyValue::Json(value) => {
            let canonical = canonical_json(&value);
            let digest = ResultDigest::of(ToolOutcome::Ok, &canonical);
            let text = match value {
                Value::String(text) => text_or_note(text),
                other => other.to_string(),
            };
            (vec![Content::text(text)], digest)
        }
        BodyValue::Parts(parts) => {
            let digest = ResultDigest::of_parts(ToolOutcome::Ok, &parts);
            let mut parts: Vec<Content> =
                parts.into_iter().filter(|part| !part.is_empty()).collect();
            if parts.is_empty() {
                parts.push(Content::text("(the result is empty)"));
            }
            (parts, digest)
        }
    };
    let ok = result(ready, ToolOutcome::Ok);
    Rendered {
        result: capped(ready, ToolOutcome::Ok, ok, parts, options).build(),
        digest,
        termination: None,
    }
}

fn text_or_note(text: String) -> String {
    if text.is_empty() {
        "(the result is an empty text)".to_owned()
    } else {
        text
    }
}

/// Cuts the text of a result to the limit, at a character boundary, with a notice of sizes; keeps
/// the whole beside it.
fn capped(
    ready: &ReadyCall,
    outcome: ToolOutcome,
    builder: ToolResultBuilder,
    parts: Vec<Content>,
    options: &ExecutionOptions,
) -> ToolResultBuilder {
    let parts = rendered_by_handler(ready, outcome, parts, options);
    let limits = ready.tool.tool().limits();
    let limit = limits.max_result_bytes.unwrap_or(options.max_result_bytes);
    let size: usize = parts
        .iter()
        .filter_map(Content::as_text)
        .map(str::len)
        .sum();
    if size <= limit {
        return builder.content(parts);
    }
    let mut left = limit;
    let mut cut = Vec::with_capacity(parts.len() + 1);
    for part in &parts {
        match part.as_text() {
            Some(text) if text.len() > left => {
                let end = text.floor_char_boundary(left);
                left = 0;
                if end > 0 {
                    cut.push(Content::text(&text[..end]));
                }
            }
            Some(text) => {
                left -= text.len();
                cut.push(part.clone());
            }
            None => cut.push(part.clone()),
        }
    }
    let kept: usize = cut.iter().filter_map(Content::as_text).map(str::len).sum();
    cut.push(Content::text(format!(
        "\n[cut: {kept} of {size} bytes are shown]"
    )));
    builder.content(cut).full_content(parts)
}

/// What the caller's renderer makes of a result; a panic in it, or nothing at all, leaves it as it is.
fn rendered_by_handler(
    ready: &ReadyCall,
    outcome: ToolOutcome,
    parts: Vec<Content>,
    options: &ExecutionOptions,
) -> Vec<Content> {
    let Some(renderer) = &options.result_renderer else {
        return parts;
    };
    let call = RenderingCall {
        tool: ready.tool.name(),
        call: &ready.call,
        occurrence: ready.occurrence,
        outcome,
    };
    let rendered = catch_unwind(AssertUnwindSafe(|| renderer.render(&call, &parts)));
    match rendered {
        Ok(Some(content)) if content.iter().any(|part| !part.is_empty()) => content,
        Ok(_) => parts,
        Err(payload) => {
            let panic = panic_message(&*payload);
            tracing::error!(tool = call.tool, %panic, "a result renderer panicked");
            parts
        }
    }
}
