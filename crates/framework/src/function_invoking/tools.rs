//! The tools of a request.

use raf_core::Result;
use raf_tools::{ToolOptionsExt, ToolSet};

use super::FunctionInvokingChatClient;
use super::leg::Leg;
use super::run::Stop;

/// The tools of the next request, unless something says stop while a source is asked.
pub(super) async fn tools_or_stop(
    client: &FunctionInvokingChatClient,
    leg: &Leg,
) -> Result<std::result::Result<ToolSet, Stop>> {
    tokio::select! {
        biased;
        stop = leg.stopped() => Ok(Err(stop)),
        tools = visible_tools(client, leg) => Ok(Ok(tools?)),
    }
}

/// The tools of the next request, asked of every source afresh (contract D10).
async fn visible_tools(client: &FunctionInvokingChatClient, leg: &Leg) -> Result<ToolSet> {
    let options = client.options();
    let mut set = ToolSet::builder()
        .with_source("the registered tools", client.executor().registry().tools())?;
    for source in &options.tool_sources {
        set = set.with_source("a tool source of the agent", &source.tools().await?)?;
    }
    for source in leg.options.provider_tools() {
        set = set.with_source("the tools given with the run", &source.tools().await?)?;
    }
    set = set.with_declared(&leg.options.tools)?;
    for source in leg.context.iter().flat_map(|context| &context.tools) {
        set = set.with_source("the tools of a context provider", &source.tools().await?)?;
    }
    let set = set.with_hidden_source("the additional tools", options.additional_tools.tools())?;
    Ok(set.build())
}

/// The tools that were asked for before the request; those of now where the leg was taken up behind that.
pub(super) async fn known_tools(
    client: &FunctionInvokingChatClient,
    leg: &mut Leg,
) -> Result<ToolSet> {
    match leg.tools.take() {
        Some(tools) => Ok(tools),
        None => visible_tools(client, leg).await,
    }
}
