//! The default host: keeps nothing, runs every body.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{BatchBody, IStepHost, IStepRecorder, Step, StepBody, StepCall};
use crate::error::Result;

/// Keeps nothing: every step is entered, in process. What a loop without a durable store uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectStepHost;

#[async_trait]
impl IStepHost for DirectStepHost {
    fn records(&self) -> bool {
        false
    }

    async fn step(&self, _: &Step, body: StepBody<'_>) -> Result<Value> {
        body.await
    }

    async fn batch(&self, _: &Step, body: BatchBody<'_>) -> Result<Value> {
        body(Arc::new(*self), Vec::new()).await
    }
}

#[async_trait]
impl IStepRecorder for DirectStepHost {
    async fn started(&self, _: &[StepCall]) -> Result<()> {
        Ok(())
    }

    async fn ended(&self, _: u32, _: Value) -> Result<()> {
        Ok(())
    }
}
