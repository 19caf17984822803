//! What a tool that runs an agent may say.

use super::Impossible;
use super::check::{Checked, check_reply, check_tool};
use crate::format::{Tool, Visibility};

/// An agent stands alone in its body, and its own tools are ordinary ones.
pub(super) fn check(name: &str, tool: &Tool) -> Checked {
    let first = tool.first.iter().find(|does| does.value.agent.is_some());
    if let Some(does) = first {
        let text = format!("the tool '{name}' runs an agent each time or never: say it in `does`");
        return Err(Impossible::new(does.line, text));
    }
    let (Some(agent), Some(does)) = (tool.agent(), &tool.does) else {
        return Ok(());
    };
    let impossible = |text: String| Err(Impossible::new(does.line, text));
    if !does.value.is_agent_alone() || !tool.first.is_empty() {
        return impossible(format!(
            "the tool '{name}' runs an agent, and does nothing else"
        ));
    }
    if tool.params.is_some() || tool.schema.is_some() {
        return impossible(format!(
            "the tool '{name}' runs an agent: its one parameter is `task`, a text"
        ));
    }
    for (own, tool) in agent.tools.iter() {
        if tool.given || tool.visible != Visibility::Offered {
            return impossible(format!(
                "'{own}', a tool of the agent '{name}', is neither `given` nor other than offered"
            ));
        }
        check_tool(own, tool)?;
    }
    for reply in &agent.replies {
        check_reply(reply.line, &reply.value)?;
    }
    Ok(())
}

/// The names of a tool and of those of its agent, at any depth.
pub(super) fn names<'a>(name: &'a str, tool: Option<&'a Tool>, known: &mut Vec<&'a str>) {
    known.push(name);
    let Some(agent) = tool.and_then(Tool::agent) else {
        return;
    };
    for (name, tool) in agent.tools.iter() {
        names(name, Some(tool), known);
    }
}
