//! The end of a run.

use async_trait::async_trait;
use raf_core::{ClosedReason, Error, FinishReason, Result};
use serde::{Deserialize, Serialize};

use super::LegStep;
use super::ask::ReplyError;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::records;

/// Closes the record of a run, if there is one.
pub(in crate::function_invoking) struct Close {
    pub(in crate::function_invoking) reason: ClosedReason,
    pub(in crate::function_invoking) end: RunEnd,
}

/// How a run ended: what is around a nested run asks, if it was not there to hear it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::function_invoking) enum RunEnd {
    /// It came to its end.
    Finished(FinishReason),
    /// It failed.
    Failed(ReplyError),
    /// A new message of the user superseded it.
    Superseded,
}

impl RunEnd {
    /// A failure, as plain data.
    pub(in crate::function_invoking) fn failed(error: &Error) -> Self {
        Self::Failed(ReplyError::from(error))
    }
}

#[async_trait]
impl LegStep for Close {
    type Value = RunEnd;

    fn name(&self, _: &Leg) -> String {
        match self.reason {
            ClosedReason::Superseded => "superseded",
            _ => "end",
        }
        .to_owned()
    }

    async fn enter(self, leg: &mut Leg) -> Result<RunEnd> {
        records::close(leg, self.reason).await?;
        Ok(self.end)
    }
}
