//! The settings of an agent as they stand in a configuration file.

use std::time::Duration;

use raf_core::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

use super::config::AgentConfigBuilder;

/// What a configuration file may say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub(super) struct Settings {
    name: Option<String>,
    description: Option<String>,
    instructions: Option<String>,
    model: Option<String>,
    temperature: Option<f64>,
    max_output_tokens: Option<u32>,
    max_rounds: Option<u32>,
    max_calls: Option<u32>,
    max_wall_time_secs: Option<u64>,
    tool_timeout_secs: Option<u64>,
    max_parallel_tools: Option<usize>,
    wrap_up: Option<bool>,
}

/// Reads settings.
///
/// # Errors
/// Unknown keys and values of the wrong type, with what is known.
pub(super) fn read(settings: Value) -> Result<Settings> {
    serde_json::from_value(settings).map_err(|error| {
        Error::configuration(format!("the settings of the agent cannot be used: {error}"))
    })
}

impl Settings {
    /// Lays the settings over what is set so far.
    pub(super) fn apply(self, mut builder: AgentConfigBuilder) -> AgentConfigBuilder {
        fn set<T>(
            builder: AgentConfigBuilder,
            value: Option<T>,
            set: impl FnOnce(AgentConfigBuilder, T) -> AgentConfigBuilder,
        ) -> AgentConfigBuilder {
            match value {
                Some(value) => set(builder, value),
                None => builder,
            }
        }
        if let Some(0) = self.max_parallel_tools {
            let text = "`max_parallel_tools` is 0, so that no tool could run: set at least 1";
            return builder.fault(Error::configuration(text));
        }
        builder = set(builder, self.name, AgentConfigBuilder::name);
        builder = set(builder, self.description, AgentConfigBuilder::description);
        builder = set(builder, self.instructions, AgentConfigBuilder::instructions);
        builder = set(builder, self.model, AgentConfigBuilder::model);
        builder = set(builder, self.max_rounds, AgentConfigBuilder::max_rounds);
        builder = set(builder, self.max_calls, AgentConfigBuilder::max_calls);
        builder = set(
            builder,
            self.tool_timeout_secs,
            AgentConfigBuilder::tool_timeout_secs,
        );
        builder = set(builder, self.max_wall_time_secs, |builder, seconds| {
            builder.limits(|limits| limits.with_max_wall_time(Duration::from_secs(seconds)))
        });
        builder = set(builder, self.wrap_up, |builder, wrap_up| {
            builder.limits(|limits| limits.with_wrap_up(wrap_up))
        });
        builder = set(builder, self.max_parallel_tools, |builder, tools| {
            builder.limits(|mut limits| {
                limits.execution.max_concurrency = tools;
                limits
            })
        });
        if self.temperature.is_some() {
            builder.defaults.temperature = self.temperature;
        }
        if self.max_output_tokens.is_some() {
            builder.defaults.max_output_tokens = self.max_output_tokens;
        }
        builder
    }
}
