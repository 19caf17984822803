//! The scripted side of a case: what the model says, what bodies do.

use std::time::Duration;

use raf_core::ChatMessage;
use raf_testing::{Behaviour, Reply};
use serde_json::json;

use crate::ops::{CallOp, Tool};

/// Labels of the results behind the last message with calls that no loop made.
pub(crate) fn foreign_results(conversation: &[ChatMessage]) -> Vec<String> {
    let place = conversation
        .iter()
        .rposition(|message| message.tool_calls().next().is_some());
    let behind = place.map_or(&[][..], |place| &conversation[place + 1..]);
    behind
        .iter()
        .flat_map(ChatMessage::tool_results)
        .filter(|result| result.occurrence().is_none())
        .map(|result| result.call_id().to_owned())
        .collect()
}

pub(crate) fn reply(calls: &[CallOp]) -> Reply {
    calls.iter().fold(Reply::new(), |reply, call| {
        let arguments = if call.invalid {
            format!(r#"{{"n":"{}"}}"#, call.n)
        } else {
            format!(r#"{{"n":{}}}"#, call.n)
        };
        reply.call(call.id, call.tool.name(), &arguments)
    })
}

pub(crate) fn body(tool: Tool) -> Behaviour {
    let says = Behaviour::from_fn(move |context, arguments| {
        let again = context.resumption().map(|seen| seen.data["again"] == true);
        match again {
            None | Some(true) if tool.asks() => {
                Behaviour::fails(|| raf_tools::ToolError::interrupt(json!("which?"), json!(1)))
            }
            _ => Behaviour::text(format!("{} {}", tool.name(), arguments["n"])),
        }
    });
    says.after_sleep(Duration::from_millis(1))
}
