//! What a scripted client was asked.

use raf_core::{ChatClientRunOptions, ChatMessage, MessageRole};

/// One request as it reached the scripted client.
#[derive(Clone)]
#[non_exhaustive]
pub struct ScriptedRequest {
    /// Which request of this client, from 0.
    pub index: usize,
    /// The messages, the same handles that the caller gave.
    pub messages: Vec<ChatMessage>,
    /// The options.
    pub options: ChatClientRunOptions,
}

impl ScriptedRequest {
    /// A request.
    pub fn new(index: usize, messages: &[ChatMessage], options: ChatClientRunOptions) -> Self {
        Self {
            index,
            messages: messages.to_vec(),
            options,
        }
    }

    /// The text of the last message of the user; empty if there is none.
    pub fn user_text(&self) -> String {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role() == MessageRole::User)
            .map(ChatMessage::text)
            .unwrap_or_default()
    }

    /// The names of the tools that the model was offered.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.options.tools.iter();
        tools.map(raf_core::ToolDeclaration::name).collect()
    }

    /// Each message in one line, for comparing whole requests: `S:`, `D:`, `U:` or `A:` and the
    /// text, the ids of an assistant's calls as `[c1,c2]`, and `R(id, outcome: 'text')` per result.
    ///
    /// ```
    /// use raf_core::{ChatClientRunOptions, ChatMessage, ToolCall, ToolResult};
    /// use raf_testing::ScriptedRequest;
    ///
    /// let messages = [
    ///     ChatMessage::user("go"),
    ///     ChatMessage::assistant_calls([ToolCall::new("c1", "t", "{}")]),
    ///     ChatMessage::tool(ToolResult::ok("c1", "done")),
    /// ];
    /// let request = ScriptedRequest::new(0, &messages, ChatClientRunOptions::new());
    /// assert_eq!(request.lines(), ["U:go", "A:[c1]", "R(c1, ok: 'done')"]);
    /// ```
    pub fn lines(&self) -> Vec<String> {
        transcript_lines(&self.messages)
    }
}

/// Each message in one line; see [`ScriptedRequest::lines`].
pub fn transcript_lines(messages: &[ChatMessage]) -> Vec<String> {
    let mut lines = Vec::with_capacity(messages.len());
    for message in messages {
        let letter = match message.role() {
            MessageRole::System => "S",
            MessageRole::Developer => "D",
            MessageRole::User => "U",
            MessageRole::Assistant => "A",
            _ => "",
        };
        let results = message.tool_results().map(|result| {
            let outcome = outcome_word(result.outcome());
            format!("R({}, {outcome}: '{}')", result.call_id(), result.text())
        });
        if message.role() == MessageRole::Tool {
            lines.extend(results);
            continue;
        }
        let mut line = format!("{letter}:{}", message.text());
        let ids: Vec<&str> = message.tool_calls().map(raf_core::ToolCall::id).collect();
        if !ids.is_empty() {
            let space = if message.text().is_empty() { "" } else { " " };
            line = format!("{line}{space}[{}]", ids.join(","));
        }
        lines.push(line);
    }
    lines
}

/// An outcome in the words of its JSON form: `ok`, `error failed`, `skipped limit`, `cancelled`.
pub fn outcome_word(outcome: raf_core::ToolOutcome) -> String {
    let json = serde_json::to_value(outcome).unwrap_or_default();
    let field = |name: &str| json.get(name).and_then(serde_json::Value::as_str);
    [field("status"), field("class"), field("reason")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

impl std::fmt::Debug for ScriptedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedRequest")
            .field("index", &self.index)
            .field("messages", &self.lines())
            .field("tools", &self.tool_names())
            .field("tool_choice", &self.options.tool_choice)
            .finish_non_exhaustive()
    }
}
