//! From the names and arguments of the wire back to those that the caller knows.

use std::borrow::Cow;
use std::sync::Arc;

use raf_core::{AgentResponseUpdate, ToolCall};

use crate::json::Json;
use crate::request::takes_null;

/// What was changed on the way out. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Restore(Option<Arc<[Changed]>>);

/// A tool that went out changed.
#[derive(Debug)]
pub struct Changed {
    /// Its name on the wire.
    pub wire_name: String,
    /// Its name for the caller.
    pub name: String,
    /// The schema as it was, if optional properties went out as nullable.
    pub schema: Option<Json>,
}

impl Restore {
    /// What was changed; nothing to restore if that is nothing.
    pub fn new(changed: Vec<Changed>) -> Self {
        Self((!changed.is_empty()).then(|| changed.into()))
    }

    /// The update in the caller's terms.
    #[inline]
    pub fn update(&self, update: AgentResponseUpdate) -> AgentResponseUpdate {
        match &self.0 {
            None => update,
            Some(changed) => restored(changed, update),
        }
    }
}

fn restored(changed: &[Changed], update: AgentResponseUpdate) -> AgentResponseUpdate {
    let find = |name: &str| changed.iter().find(|changed| changed.wire_name == name);
    match update {
        AgentResponseUpdate::ToolCallStart { position, mut call } => {
            if let Some(changed) = find(&call.name) {
                call.name.clone_from(&changed.name);
            }
            AgentResponseUpdate::ToolCallStart { position, call }
        }
        AgentResponseUpdate::ToolCallEnd { position, call } => {
            let call = match find(call.name()) {
                Some(changed) => changed.restore(&call),
                None => call,
            };
            AgentResponseUpdate::ToolCallEnd { position, call }
        }
        other => other,
    }
}

impl Changed {
    fn restore(&self, call: &ToolCall) -> ToolCall {
        let mut builder = call.to_builder().name(&self.name);
        if let Some(schema) = &self.schema
            && let Cow::Owned(arguments) = without_nulls(call.arguments(), schema)
        {
            builder = builder.arguments(arguments);
        }
        builder.build()
    }
}

/// In strict mode an optional property is there and null: the caller's schema wants it away.
fn without_nulls<'a>(arguments: &'a str, schema: &Json) -> Cow<'a, str> {
    if !arguments.contains("null") {
        return Cow::Borrowed(arguments);
    }
    let Ok(mut value) = Json::parse(arguments) else {
        return Cow::Borrowed(arguments);
    };
    if strip(&mut value, schema) {
        Cow::Owned(value.to_text())
    } else {
        Cow::Borrowed(arguments)
    }
}

fn strip(value: &mut Json, schema: &Json) -> bool {
    let mut changed = false;
    match value {
        Json::Object(members) => {
            let required = schema
                .get("required")
                .and_then(Json::as_array)
                .unwrap_or(&[]);
            members.retain_mut(|(name, value)| {
                let Some(property) = schema.get("properties").and_then(|all| all.get(name)) else {
                    return true;
                };
                let is_optional = !required.iter().any(|of| of.as_str() == Some(name));
                if *value == Json::Null && is_optional && !takes_null(property) {
                    changed = true;
                    return false;
                }
                changed |= strip(value, property);
                true
            });
        }
        Json::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    changed |= strip(item, schema);
                }
            }
        }
        _ => {}
    }
    changed
}
