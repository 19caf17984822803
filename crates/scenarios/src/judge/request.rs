//! Compares a model request with what was expected of it.

use std::collections::BTreeSet;

use raf_core::{ChatMessage, MessageRole};

use super::{compare_lines, differ};
use crate::format::{Located, Request, Shorthand};
use crate::notation::Line;
use crate::play::{Player, is_choice};
use crate::report::Fault;

pub(super) fn request(
    player: &Player<'_>,
    number: &str,
    expected: &Located<Shorthand<Request>>,
    faults: &mut Vec<Fault>,
) {
    let line = expected.line;
    let mut fault = |text: String| faults.push(Fault::new(line, text));
    let find = |number: usize| number.checked_sub(1).and_then(|n| player.requests.get(n));
    let Some(request) = number.parse().ok().and_then(find) else {
        let is = player.requests.len();
        fault(format!("there is no request {number}: {is} were made"));
        return;
    };
    let wanted = &expected.value.0;
    let bytes = |messages: &[ChatMessage]| -> Vec<String> {
        let json = messages.iter().map(serde_json::to_string);
        json.map(Result::unwrap_or_default).collect()
    };
    if let Some(choice) = &wanted.tool_choice
        && !is_choice(request.options.tool_choice.as_ref(), choice)
    {
        let is = &request.options.tool_choice;
        fault(format!(
            "the tool choice of request {number} is {is:?}, expected {choice:?}"
        ));
    }
    if let Some(tools) = &wanted.tools
        && request.tool_names() != *tools
    {
        let own: Vec<String> = request
            .tool_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        fault(differ(
            &format!("the tools of request {number}"),
            &own,
            tools,
        ));
    }
    if let Some(tokens) = wanted.max_output_tokens
        && request.options.max_output_tokens != Some(tokens)
    {
        let is = request.options.max_output_tokens;
        fault(format!(
            "request {number} allows {is:?} output tokens, expected {tokens}"
        ));
    }
    let compared = [
        (wanted.begins_with_request, false),
        (wanted.same_as_request, true),
    ];
    for (other, whole) in compared {
        let Some(other) = other else { continue };
        let Some(first) = find(other) else {
            fault(format!("there is no request {other} to compare with"));
            continue;
        };
        let (first, own) = (bytes(&first.messages), bytes(&request.messages));
        if !own.starts_with(&first) || (whole && own.len() != first.len()) {
            let what = format!("request {number} beside request {other}, byte for byte");
            fault(differ(&what, &own, &first));
        }
    }
    if let Some(ids) = &wanted.message_ids {
        let assistant = request
            .messages
            .iter()
            .filter(|message| message.role() == MessageRole::Assistant);
        let own: Vec<String> = assistant
            .map(|message| message.message_id().unwrap_or_default().to_owned())
            .collect();
        if own != *ids {
            fault(differ(
                &format!("the message ids of request {number}"),
                &own,
                ids,
            ));
        }
    }
    if wanted.ids_are_unique {
        let calls: Vec<&str> = request
            .messages
            .iter()
            .flat_map(ChatMessage::tool_calls)
            .map(raf_core::ToolCall::id)
            .collect();
        let results = request.messages.iter().flat_map(ChatMessage::tool_results);
        let answered: Vec<&str> = results.map(raf_core::ToolResult::call_id).collect();
        let different: BTreeSet<&str> = calls.iter().copied().collect();
        if different.len() != calls.len() || calls != answered {
            fault(format!(
                "request {number} pairs {calls:?} with {answered:?}"
            ));
        }
    }
    if let Some(messages) = &wanted.messages {
        let lines = Line::of(&request.messages);
        let line = messages.first().map_or(line, |message| message.line);
        let expected: Vec<String> = messages
            .iter()
            .map(|message| message.value.clone())
            .collect();
        let what = format!("the messages of request {number}");
        compare_lines(&what, &lines, &expected, line, faults);
    }
}
