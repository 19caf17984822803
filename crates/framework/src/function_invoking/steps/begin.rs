//! The first step of a leg: does it go on with a run that waits, and with what?

use async_trait::async_trait;
use raf_core::{ClosedReason, Result, RunId};
use serde::{Deserialize, Serialize};

use super::steering::Steering;
use super::{LegStep, RunEnd, begin_journal};
use crate::function_invoking::FunctionInvokingChatClient;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::resume::{self, Beginning};
use crate::function_invoking::run::{Run, Stop};
use crate::function_invoking::steer::append_context;
use crate::function_invoking::tools::tools_or_stop;
use crate::function_invoking::{durable, records};

/// The beginning of a leg.
pub(in crate::function_invoking) struct Begin<'a> {
    pub(in crate::function_invoking) client: &'a FunctionInvokingChatClient,
}

/// How a leg begins.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::function_invoking) struct Begun {
    pub(in crate::function_invoking) way: Way,
    /// The options that steer it (K9); unset without a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::function_invoking) steering: Option<Steering>,
}

/// What a leg does first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::function_invoking) enum Way {
    /// It asks the model.
    Ask,
    /// It runs what may run of the open batch.
    GoOn {
        /// A new message of the user gave way to nothing: what is undecided is superseded.
        superseded: bool,
    },
    /// Its calls wait still.
    StillWaiting,
    /// A nested run that ended before the run around it heard of it.
    Ended(RunEnd),
    /// Something said stop before anything was done.
    Stopped(Stop),
}

#[async_trait]
impl LegStep for Begin<'_> {
    type Value = Begun;

    const BEFORE_BATCH: bool = true;

    fn name(&self, _: &Leg) -> String {
        "begin".to_owned()
    }

    async fn enter(self, leg: &mut Leg) -> Result<Begun> {
        if leg.steps.is_some() && !leg.is_durable() {
            leg.writer = Some(RunId::random().to_string());
        }
        let way = begin(self.client, leg).await?;
        let options = self.client.options();
        let steering = leg.steps.as_ref().map(|_| Steering::of(options));
        Ok(Begun { way, steering })
    }
}

async fn begin(client: &FunctionInvokingChatClient, leg: &mut Leg) -> Result<Way> {
    if let Some(stop) = leg.stop() {
        // What an earlier leg left open still waits: the caller must see it (C3).
        match resume::waiting(leg).await {
            Ok(waiting) => leg.pending = waiting,
            Err(error) => tracing::warn!(%error, "what waits could not be looked up"),
        }
        return Ok(Way::Stopped(stop));
    }
    let tools = match tools_or_stop(client, leg).await? {
        Ok(tools) => tools,
        Err(stop) => return Ok(Way::Stopped(stop)),
    };
    Ok(match resume::begin(leg, &tools, client.options()).await? {
        Beginning::Ask => {
            begin_journal(leg).await;
            append_context(leg).await;
            records::open(leg);
            Way::Ask
        }
        Beginning::Continue => Way::Ask,
        Beginning::Ended(end) => Way::Ended(end),
        Beginning::StillWaiting(batch) => {
            leg.open = Some(batch);
            Way::StillWaiting
        }
        Beginning::GoOn { batch, superseded } => {
            leg.open = Some(batch);
            Way::GoOn { superseded }
        }
    })
}

/// A new turn of the user begins a new run, behind one whose calls it superseded.
pub(in crate::function_invoking) struct Turn;

#[async_trait]
impl LegStep for Turn {
    type Value = ();

    const BEFORE_BATCH: bool = true;

    fn name(&self, _: &Leg) -> String {
        "turn".to_owned()
    }

    async fn enter(self, leg: &mut Leg) -> Result<()> {
        leg.run = Run::new();
        begin_journal(leg).await;
        append_context(leg).await;
        records::open(leg);
        Ok(())
    }
}

/// Closes the run that a leg has found, and that the conversation has left behind.
///
/// # Errors
/// What the store fails with.
pub(in crate::function_invoking) async fn close_left_behind(leg: &mut Leg) -> Result<()> {
    records::close(leg, ClosedReason::Superseded).await?;
    durable::write_now(leg, "superseded").await?;
    records::let_go(leg).await?;
    leg.run = Run::new();
    Ok(())
}
