//! Parts of a reply that only their provider understands: tools that it runs itself, citations,
//! summaries. They pass through a transcript unchanged and in order, and carry whose they are.

use raf_core::{Content, UnknownContent};
use serde_json::Value;

use crate::json::Json;

/// The member that says whose part it is. It never goes over the wire.
const PROVIDER: &str = "raf_provider";

/// A part of this provider (its dialect's name), as it came. JSON form: the part itself, with a member
/// `raf_provider`.
pub fn provider_part(provider: &str, part: &Json) -> Content {
    let mut value = part.to_value();
    if let Some(members) = value.as_object_mut() {
        members.insert(PROVIDER.to_owned(), Value::String(provider.to_owned()));
    }
    Content::Unknown(UnknownContent::new(value))
}

/// Whose part it is, if it is a provider's: one that a caller made has no owner.
pub fn part_owner(part: &UnknownContent) -> Option<&str> {
    part.value.get(PROVIDER)?.as_str()
}

/// The part as it came, if it is this provider's own.
pub fn own_part(part: &UnknownContent, provider: &str) -> Option<Value> {
    if part_owner(part)? != provider {
        return None;
    }
    let mut value = part.value.clone();
    value.as_object_mut()?.remove(PROVIDER);
    Some(value)
}

#[cfg(test)]
mod tests {
    use raf_core::Content;

    use super::{own_part, part_owner, provider_part};
    use crate::json::Json;

    #[test]
    fn a_part_goes_back_to_its_owner_as_it_came() {
        let sent = Json::parse(r#"{"type":"server_tool_use","input":{"b":1,"a":null}}"#).unwrap();
        let Content::Unknown(part) = provider_part("anthropic", &sent) else {
            panic!("an unknown part")
        };
        assert_eq!(part_owner(&part), Some("anthropic"));
        assert_eq!(own_part(&part, "anthropic"), Some(sent.to_value()));
        assert_eq!(own_part(&part, "openai"), None);
    }
}
