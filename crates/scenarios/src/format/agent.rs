//! An agent that a tool runs.

use schemars::JsonSchema;
use serde::Deserialize;

use super::config::Config;
use super::located::{Located, Ordered};
use super::reply::Reply;
use super::tool::Tool;

/// An agent: each call of its tool is a run of its own, of the call's argument `task`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// What its model replies, over all calls; never over HTTP.
    #[serde(default)]
    pub replies: Vec<Located<Reply>>,
    /// Its own tools. Entries of tools of one name count together, wherever they stand.
    #[serde(default)]
    pub tools: Ordered<Tool>,
    /// Options of its loop.
    #[serde(default)]
    pub config: Config,
}
