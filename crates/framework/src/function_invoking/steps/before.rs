//! What comes before a request: may there be one, with which tools, and what has come in meanwhile?

use async_trait::async_trait;
use raf_core::{BudgetLimit, FinishReason, Result};

use super::LegStep;
use crate::function_invoking::FunctionInvokingChatClient;
use crate::function_invoking::drive::LegEnd;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::options::FunctionInvokingOptions;
use crate::function_invoking::records;
use crate::function_invoking::steer::take_inbox;
use crate::function_invoking::tools::tools_or_stop;

/// Before a request.
pub(in crate::function_invoking) struct Before<'a> {
    pub(in crate::function_invoking) client: &'a FunctionInvokingChatClient,
    pub(in crate::function_invoking) options: &'a FunctionInvokingOptions,
    /// The end of the run if no request is left, where it is not the limit of rounds.
    pub(in crate::function_invoking) last_words: Option<&'a FinishReason>,
}

#[async_trait]
impl LegStep for Before<'_> {
    /// The end, if no request is made.
    type Value = Option<LegEnd>;

    fn name(&self, leg: &Leg) -> String {
        format!("round/{}/before", leg.run.counters.rounds)
    }

    async fn enter(self, leg: &mut Leg) -> Result<Option<LegEnd>> {
        if let Some(stop) = leg.stop() {
            return Ok(Some(LegEnd::Stopped(stop)));
        }
        if let Some(end) = leg.run.counters.round_end(self.options) {
            let end = self.last_words.cloned().unwrap_or(end);
            return Ok(Some(LegEnd::Finish(end)));
        }
        if leg.is_out_of_time(self.options) {
            let limit = FinishReason::Budget(BudgetLimit::WallTime);
            return Ok(Some(LegEnd::Finish(limit)));
        }
        take_inbox(leg).await;
        match tools_or_stop(self.client, leg).await? {
            Ok(tools) => leg.tools = Some(tools),
            Err(stop) => return Ok(Some(LegEnd::Stopped(stop))),
        }
        records::begin_round(leg).await?;
        Ok(None)
    }
}
