//! What the options of a run come to: limits, thinking, sampling. Settings that the API refuses beside
//! each other are refused or fitted here.

use raf_core::{Error, ReasoningEffort, Result};
use raf_wire::BodyWriter;

use super::Request;
use crate::dialect::{ModelRules, ThinkingForm};
use crate::options::Conflicts;
use crate::run_options::Thinking;

/// The smallest budget that the API takes.
const LEAST_BUDGET: u32 = 1024;

/// The settings as they are sent.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) max_tokens: u32,
    /// Whether the model thinks.
    pub(super) thinks: bool,
    thinking: Option<Thinking>,
    pub(super) effort: Option<String>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<u32>,
    stop: Vec<String>,
}

/// Settles the options. `lacks_thinking` says that the running turn does not begin with a thought of
/// this model: it cannot be thought on from there.
///
/// # Errors
/// Settings that the API refuses, and what to change.
pub(super) fn settle(
    request: &Request<'_>,
    model: &ModelRules,
    lacks_thinking: bool,
) -> Result<Settled> {
    let rules = &request.dialect.rules;
    let form = rules.thinking_of(model);
    let given = request.options.max_output_tokens.or(request.max_tokens);
    let usual = model.max_tokens.unwrap_or(rules.max_tokens);
    let mut settled = Settled {
        max_tokens: given.unwrap_or(usual),
        thinks: false,
        thinking: None,
        effort: None,
        temperature: request.options.temperature,
        top_p: request.options.top_p,
        top_k: request.own.top_k,
        stop: request.options.stop.clone(),
    };
    let raw = request.options.extra_body.get("thinking");
    if let Some(raw) = raw {
        settled.thinks = raw["type"].as_str().is_some_and(|kind| kind != "disabled");
    } else {
        settle_thinking(request, form, given, usual, &mut settled)?;
        if settled.thinks && lacks_thinking {
            tracing::warn!(
                "the running turn does not begin with a thought of this model: thinking is off for \
                 this request"
            );
            settled.thinks = false;
            settled.thinking = Some(Thinking::Disabled);
            settled.max_tokens = given.unwrap_or(usual);
        }
    }
    settle_sampling(request, form, &mut settled)?;
    Ok(settled)
}

fn settle_thinking(
    request: &Request<'_>,
    form: ThinkingForm,
    given: Option<u32>,
    usual: u32,
    settled: &mut Settled,
) -> Result<()> {
    let effort = request.options.reasoning_effort.as_ref();
    let wanted = match (request.own.thinking, effort) {
        (Some(thinking), _) => thinking,
        (None, None) => return Ok(()),
        (None, Some(ReasoningEffort::None)) => Thinking::Disabled,
        (None, Some(effort)) if form == ThinkingForm::Adaptive => {
            settled.effort = Some(word(effort).to_owned());
            Thinking::Adaptive
        }
        (None, Some(effort)) => {
            budget_of(effort, form, given, usual, settled);
            return Ok(());
        }
    };
    let thinking = match (wanted, form) {
        (Thinking::Disabled, ThinkingForm::Never) => return Ok(()),
        (_, ThinkingForm::Never) => {
            conflict(
                request,
                "this endpoint knows no thinking: leave the setting out",
            )?;
            return Ok(());
        }
        (Thinking::Budget(_), ThinkingForm::Adaptive) => {
            conflict(
                request,
                "this model takes adaptive thinking alone: use Thinking::Adaptive, or a reasoning \
                 effort",
            )?;
            Thinking::Adaptive
        }
        (Thinking::Budget(budget), _) => match fit(request, budget, given)? {
            Some(budget) => {
                settled.max_tokens = given.unwrap_or(usual.saturating_add(budget));
                Thinking::Budget(budget)
            }
            None => Thinking::Disabled,
        },
        (thinking, _) => thinking,
    };
    settled.thinks = thinking != Thinking::Disabled;
    settled.thinking = Some(thinking);
    Ok(())
}

/// A budget of the caller's own, fitted if that is allowed.
fn fit(request: &Request<'_>, budget: u32, given: Option<u32>) -> Result<Option<u32>> {
    let mut fitted = budget;
    if fitted < LEAST_BUDGET {
        conflict(
            request,
            "the budget for thinking is less than 1024 tokens: raise it, or turn thinking off",
        )?;
        fitted = LEAST_BUDGET;
    }
    match given {
        Some(most) if fitted >= most => {
            conflict(
                request,
                "the budget for thinking is not less than the limit of output tokens, which contains \
                 it: raise the limit, or lower the budget",
            )?;
            Ok(Some(most.saturating_sub(1)).filter(|fitted| *fitted >= LEAST_BUDGET))
        }
        _ => Ok(Some(fitted)),
    }
}

/// A budget by a rough word. It gives way to the limit of output tokens.
fn budget_of(
    effort: &ReasoningEffort,
    form: ThinkingForm,
    given: Option<u32>,
    usual: u32,
    settled: &mut Settled,
) {
    if form == ThinkingForm::Never {
        return;
    }
    let budget = match effort {
        ReasoningEffort::Minimal => LEAST_BUDGET,
        ReasoningEffort::Low => 2048,
        ReasoningEffort::Medium => 8192,
        _ => 16_384,
    };
    let budget = given.map_or(budget, |most| budget.min(most.saturating_sub(1)));
    if budget >= LEAST_BUDGET {
        settled.max_tokens = given.unwrap_or(usual.saturating_add(budget));
        settled.thinks = true;
        settled.thinking = Some(Thinking::Budget(budget));
    }
}

/// The words of `output_config.effort`.
fn word(effort: &ReasoningEffort) -> &str {
    match effort {
        ReasoningEffort::Minimal => "low",
        effort => effort.as_str(),
    }
}

fn settle_sampling(request: &Request<'_>, form: ThinkingForm, settled: &mut Settled) -> Result<()> {
    for (name, value) in [
        ("temperature", settled.temperature),
        ("top_p", settled.top_p),
    ] {
        if value.is_some_and(|value| !value.is_finite()) {
            return Err(Error::misuse(format!(
                "the option '{name}' is no finite number"
            )));
        }
    }
    let samples =
        settled.temperature.is_some() || settled.top_p.is_some() || settled.top_k.is_some();
    if form == ThinkingForm::Adaptive && samples {
        conflict(
            request,
            "this model takes no temperature, top_p or top_k: leave them out",
        )?;
        (settled.temperature, settled.top_p, settled.top_k) = (None, None, None);
    }
    #[expect(clippy::float_cmp, reason = "the API compares so too")]
    if settled.thinks && settled.temperature.is_some_and(|value| value != 1.0) {
        conflict(
            request,
            "the API takes no temperature but 1 while the model thinks: leave the temperature out, or \
             turn thinking off",
        )?;
        settled.temperature = None;
    }
    if settled.thinks && settled.top_k.is_some() {
        conflict(
            request,
            "the API takes no top_k while the model thinks: leave it out, or turn thinking off",
        )?;
        settled.top_k = None;
    }
    let both = settled.temperature.is_some() && settled.top_p.is_some();
    if both && !request.dialect.rules.temperature_with_top_p {
        conflict(
            request,
            "newer models take temperature or top_p, not both: leave one out",
        )?;
        settled.top_p = None;
    }
    if settled.stop.iter().any(|stop| stop.trim().is_empty()) {
        conflict(
            request,
            "the API takes no stop text of blanks: leave it out",
        )?;
        settled.stop.retain(|stop| !stop.trim().is_empty());
    }
    Ok(())
}

impl Settled {
    /// Writes what is set.
    pub(super) fn write(&self, body: &mut BodyWriter<'_>) -> Result<()> {
        if let Some(thinking) = self.thinking {
            let text = match thinking {
                Thinking::Disabled => r#"{"type":"disabled"}"#.to_owned(),
                Thinking::Adaptive => r#"{"type":"adaptive"}"#.to_owned(),
                Thinking::Budget(budget) => {
                    format!(r#"{{"type":"enabled","budget_tokens":{budget}}}"#)
                }
            };
            body.raw_field("thinking", |body| body.extend_from_slice(text.as_bytes()));
        }
        if let Some(temperature) = self.temperature {
            body.field("temperature", &temperature)?;
        }
        if let Some(top_p) = self.top_p {
            body.field("top_p", &top_p)?;
        }
        if let Some(top_k) = self.top_k {
            body.field("top_k", &top_k)?;
        }
        if !self.stop.is_empty() {
            body.field("stop_sequences", &self.stop)?;
        }
        Ok(())
    }
}

/// Refuses settings that do not go together, or says that one gives way.
///
/// # Errors
/// They are refused.
pub(super) fn conflict(request: &Request<'_>, what: &'static str) -> Result<()> {
    match request.conflicts {
        Conflicts::Refuse => Err(Error::misuse(format!(
            "{what}. (AnthropicOptions::with_conflicts(Conflicts::Adapt) lets the lesser one give way)"
        ))),
        Conflicts::Adapt => {
            tracing::warn!("{what}; the lesser one gives way");
            Ok(())
        }
    }
}
