//! What must be sent for a conversation (contract A1), by a small reference: pairing by place, within
//! the calls of one message and what stands behind it.

use raf_core::{ChatMessage, MessageRole, ToolCall, ToolResult};
use raf_testing::outcome_word;

/// One line of what is sent: role and text, calls by tool and arguments, results by outcome and text.
pub(crate) fn sent(messages: &[ChatMessage]) -> Vec<String> {
    messages.iter().flat_map(lines).collect()
}

fn lines(message: &ChatMessage) -> Vec<String> {
    if message.role() == MessageRole::Tool {
        return message.tool_results().map(result_line).collect();
    }
    let calls: Vec<String> = message.tool_calls().map(call_line).collect();
    vec![format!(
        "{:?} '{}' {}",
        message.role(),
        message.text(),
        calls.join(" ")
    )]
}

fn call_line(call: &ToolCall) -> String {
    let arguments = call.parsed_arguments().map_or_else(
        |_| "malformed".to_owned(),
        |arguments| serde_json::Value::Object(arguments.clone()).to_string(),
    );
    format!("{}({arguments})", call.name())
}

fn result_line(result: &ToolResult) -> String {
    format!("R {} '{}'", outcome_word(result.outcome()), result.text())
}

/// What must be sent for this conversation, in the same lines. A result that does not exist says
/// that it is not known what became of the call.
pub(crate) fn expected(conversation: &[ChatMessage]) -> Vec<Vec<String>> {
    let mut expected = Vec::new();
    for (index, message) in conversation.iter().enumerate() {
        match message.role() {
            MessageRole::Tool => {}
            MessageRole::Assistant => {
                expected.push(lines(message));
                let behind = &conversation[index + 1..];
                let until = behind
                    .iter()
                    .position(|next| next.tool_calls().next().is_some())
                    .unwrap_or(behind.len());
                expected.extend(results(message, &behind[..until]));
            }
            _ => expected.push(lines(message)),
        }
    }
    expected
}

/// One result per call. A filler is an empty line: see [`assert_sent`].
fn results(message: &ChatMessage, behind: &[ChatMessage]) -> Vec<Vec<String>> {
    let found: Vec<&ToolResult> = behind.iter().flat_map(ChatMessage::tool_results).collect();
    let made = |position: usize, call: &ToolCall| {
        let mut found = found.iter();
        found.find(|result| {
            let own = result.occurrence().map(|place| place.position as usize);
            own == Some(position) && result.call_id() == call.id()
        })
    };
    let mut foreign: Vec<&&ToolResult> = found
        .iter()
        .filter(|result| result.occurrence().is_none())
        .collect();
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    let mut lines: Vec<Option<String>> = calls
        .iter()
        .enumerate()
        .map(|(position, call)| made(position, call).map(|result| result_line(result)))
        .collect();
    for (call, line) in calls.iter().zip(&mut lines) {
        let given = foreign
            .iter()
            .position(|result| result.call_id() == call.id());
        if let (None, Some(given)) = (&line, given) {
            *line = Some(result_line(foreign.remove(given)));
        }
    }
    lines
        .into_iter()
        .map(|line| line.into_iter().collect())
        .collect()
}

/// Checks a request against what must be sent.
pub(crate) fn check_sent(request: &[ChatMessage], conversation: &[ChatMessage]) -> Option<String> {
    let expected = expected(conversation);
    let sent = sent(request);
    let fits = sent.len() == expected.len()
        && sent
            .iter()
            .zip(&expected)
            .all(|(sent, expected)| match expected.first() {
                Some(line) => line == sent,
                None => sent.starts_with("R cancelled"),
            });
    (!fits).then(|| format!("A1: {sent:#?} was sent for {expected:#?}"))
}
