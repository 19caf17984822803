//! Where schemas stand within a schema.

/// What the value of a keyword is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subschemas {
    /// One schema.
    One,
    /// A list of schemas.
    List,
    /// Schemas by name.
    Map,
}

/// Which schemas stand at a keyword, if any. Both old and new drafts.
pub(crate) fn subschemas_at(keyword: &str) -> Option<Subschemas> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Subschemas::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Subschemas::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
        | "properties" => Subschemas::Map,
        _ => return None,
    })
}
