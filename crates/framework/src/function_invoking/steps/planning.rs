//! What is to be done with the calls of a reply, decided once: hooks, policies and rules are not asked
//! again when the leg is taken up (steps.md, K8).

use async_trait::async_trait;
use raf_core::{FinishReason, Result, ToolCall, ToolOutcome};
use serde::{Deserialize, Serialize};

use super::LegStep;
use crate::function_invoking::FunctionInvokingChatClient;
use crate::function_invoking::drive::LegEnd;
use crate::function_invoking::hooks::{self, HooksEnd};
use crate::function_invoking::leg::Leg;
use crate::function_invoking::options::FunctionInvokingOptions;
use crate::function_invoking::plan::{self, BatchPlan, RoundFacts};
use crate::function_invoking::policy::PolicyFacts;
use crate::function_invoking::steer::{fill, hook_end, veto};
use crate::function_invoking::tools::known_tools;
use crate::function_invoking::{records, resume};

/// The plan of a round.
pub(in crate::function_invoking) struct Planning<'a> {
    pub(in crate::function_invoking) client: &'a FunctionInvokingChatClient,
    pub(in crate::function_invoking) options: &'a FunctionInvokingOptions,
    /// Whether it was the last request, which grants words only.
    pub(in crate::function_invoking) wrap_up: bool,
    /// Whether the request said that nothing may be called.
    pub(in crate::function_invoking) forbidden: bool,
}

/// What is to be done.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::function_invoking) enum Planned {
    /// A hook ends the leg.
    End(LegEnd),
    /// The batch runs; its calls are in the record.
    Run {
        /// The end that follows behind it, whatever comes of it.
        end: Option<FinishReason>,
    },
}

#[async_trait]
impl LegStep for Planning<'_> {
    type Value = Planned;

    const BEFORE_BATCH: bool = true;
    const MAY_WAIT: bool = true;

    fn name(&self, leg: &Leg) -> String {
        format!("round/{}/plan", leg.round_of_reply())
    }

    async fn enter(self, leg: &mut Leg) -> Result<Planned> {
        let calls = leg.calls_of_reply();
        let round = leg.round_of_reply();
        let options = self.options;
        let (end, vetoes) = hooks::before_batch(&options.hooks, leg, round, &calls).await;
        if end != HooksEnd::GoOn {
            return Ok(Planned::End(hook_end(leg, &calls, round, end).await));
        }
        let mut plan = match self.plan(leg, &calls, round).await {
            Ok(plan) => plan,
            Err(error) => {
                let outcome = ToolOutcome::Cancelled { started: false };
                fill(leg, &calls, round, outcome).await;
                return Err(error);
            }
        };
        veto(&mut plan, round, vetoes);
        records::planned(leg, &plan.batch).await?;
        leg.open = Some(plan.batch);
        Ok(Planned::Run { end: plan.end })
    }
}

impl Planning<'_> {
    async fn plan(&self, leg: &mut Leg, calls: &[ToolCall], round: u32) -> Result<BatchPlan> {
        let options = self.options;
        let tools = known_tools(self.client, leg).await?;
        let scope = resume::scope(leg, &leg.run.id);
        let rules = leg.store.remembered(&scope).await?;
        let policy = PolicyFacts {
            policy: options.approval_policy.as_deref(),
            rules: &rules,
            denied: &leg.run.denied,
            session_id: leg.options.session_id.as_deref(),
            untrusted_context: options.approval_policy.is_some() && leg.has_untrusted_text(),
        };
        let facts = RoundFacts {
            run_id: &leg.run.id,
            round,
            wrap_up: self.wrap_up,
            forbidden: self.forbidden,
            out_of_time: leg.is_out_of_time(options),
        };
        let mut counters = std::mem::take(&mut leg.run.counters);
        // The runs around this one lend calls; what is not used goes back.
        let wanted = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        counters.allow(leg.allowance().map(|allowance| allowance.take(wanted)));
        let executor = self.client.executor();
        let preparation = executor.preparation(&tools, &leg.run.id, &leg.options.extensions);
        let plan = plan::plan(calls, facts, preparation, options, policy, &mut counters);
        if let Some(allowance) = leg.allowance() {
            allowance.give_back(counters.allowed());
        }
        counters.allow(None);
        leg.run.counters = counters;
        leg.tools = Some(tools);
        Ok(plan)
    }
}
