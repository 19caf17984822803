//! JSON Schema of arguments: compiled once, bounded, without network access.
//!
//! What fits a plain schema is told by a small check (`schema/plain.rs`); everything else, and what is wrong,
//! by `jsonschema`.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use jsonschema::{Draft, PatternOptions, Validator};
use raf_core::{Error, Result, ToolDeclaration};
use serde_json::Value;

mod bounds;
mod faults;
mod graph;
mod keywords;
mod plain;
mod walk;

use graph::{Admission, Graph};
pub(crate) use keywords::{Subschemas, subschemas_at};
use plain::{PlainSchema, Verdict};

/// A compiled schema. A cheap handle.
///
/// Schemas may come from strangers, so they are bounded before they are compiled: 256 kB of text, 64
/// levels, 20,000 values, 64 regular expressions of 512 characters each. Expressions are matched in
/// linear time, without look-around and back-references. `$ref` reaches only into the schema itself:
/// nothing is ever fetched. Schemas that explode or lead back to themselves are refused; where the
/// work depends on the arguments, these are refused if it is too much, or told less of.
///
/// Drafts 4, 6, 7, 2019-09 and 2020-12 are told by `$schema`; without one, or with one that is not
/// known, it is 2020-12. `format` is an annotation and not checked.
#[derive(Clone)]
pub struct CompiledSchema(Arc<Inner>);

struct Inner {
    /// Set if the schema is plain: then the validator is compiled when something seems not to fit.
    plain: Option<PlainSchema>,
    validator: OnceLock<Option<Validator>>,
    declaration: ToolDeclaration,
    graph: Graph,
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompiledSchema")
            .field(&self.0.declaration.name())
            .finish()
    }
}

impl CompiledSchema {
    /// Compiles the schema of a declaration.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) with the tool's name, the
    /// place in the schema and what to do, if it is no valid schema of an object, is over a bound,
    /// or refers to something outside.
    pub fn compile(declaration: &ToolDeclaration) -> Result<Self> {
        compile(declaration).map_err(|fault| {
            Error::configuration(format!(
                "the schema of tool '{}' cannot be used: {fault}",
                crate::arguments::cut(declaration.name(), 80)
            ))
        })
    }

    /// The schema of any object: for tools that check their arguments themselves.
    pub(crate) fn any_object() -> Self {
        static ANY_OBJECT: LazyLock<CompiledSchema> = LazyLock::new(|| {
            let declaration = ToolDeclaration::new("any", "");
            CompiledSchema::compile(&declaration).expect("the default schema is one")
        });
        ANY_OBJECT.clone()
    }

    /// What is wrong with arguments, at most [`CompiledSchema::MAX_FAULTS`]; nothing if they fit.
    ///
    /// Expectations are short and never repeat a value of the arguments; names of properties occur.
    pub fn faults(&self, arguments: &Value) -> Vec<ArgumentFault> {
        let admission = match self.0.graph.admit(arguments) {
            Ok(admission) => admission,
            Err(refusal) => return vec![ArgumentFault::new("", refusal)],
        };
        let told = admission == Admission::Whole;
        let plain = self.0.plain.as_ref().filter(|_| told);
        if plain.is_some_and(|plain| plain.check(arguments) == Verdict::Fits) {
            return Vec::new();
        }
        let Some(validator) = self.0.validator() else {
            return vec![ArgumentFault::new("", "do not fit the schema")];
        };
        if validator.is_valid(arguments) {
            return Vec::new();
        }
        match admission {
            Admission::Whole => faults::collect(validator, arguments, &self.0.declaration),
            Admission::Untold => vec![ArgumentFault::new(
                "",
                "do not fit the schema, and are nested too deep to say where",
            )],
        }
    }

    /// The most faults that are told at once.
    pub const MAX_FAULTS: usize = 8;
}

impl Inner {
    /// The full validator. That of a plain schema is compiled by the first arguments that seem not to
    /// fit; were it not one after all, which `plain` rules out, there would be none.
    fn validator(&self) -> Option<&Validator> {
        let compile = || {
            let schema = document(&self.declaration);
            let validator = schema.and_then(|schema| validator(&schema));
            validator
                .inspect_err(|fault| tracing::error!(fault, "a plain schema that is none"))
                .ok()
        };
        self.validator.get_or_init(compile).as_ref()
    }
}

fn compile(declaration: &ToolDeclaration) -> Result<CompiledSchema, String> {
    let schema = document(declaration)?;
    let graph = Graph::new(&schema)?;
    let plain = match dialect(&schema) {
        Draft::Draft202012 => PlainSchema::read(&schema),
        _ => None,
    };
    let compiled = OnceLock::new();
    if plain.is_none() {
        let _ = compiled.set(Some(validator(&schema)?));
    }
    Ok(CompiledSchema(Arc::new(Inner {
        plain,
        validator: compiled,
        declaration: declaration.clone(),
        graph,
    })))
}

/// The schema of a declaration, within bounds.
fn document(declaration: &ToolDeclaration) -> Result<Value, String> {
    let mut schema = bounds::parse(declaration.parameters_json().get())?;
    refuse_other_than_objects(&schema)?;
    drop_unknown_dialect(&mut schema);
    Ok(schema)
}

fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .offline()
        .with_draft(dialect(schema))
        .should_validate_formats(false)
        .with_pattern_options(
            PatternOptions::regex()
                .size_limit(bounds::MAX_PATTERN_BYTES)
                .dfa_size_limit(bounds::MAX_PATTERN_BYTES),
        )
        .build(schema)
        .map_err(|error| faults::of_schema(&error))
}

fn refuse_other_than_objects(schema: &Value) -> Result<(), String> {
    let Value::Object(root) = schema else {
        return Err(format!(
            "it must be a JSON object, not {}",
            crate::arguments::with_article(type_name(schema))
        ));
    };
    let is_object = match root.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|r#type| r#type == "object"),
        Some(r#type) => r#type == "object",
    };
    if is_object {
        return Ok(());
    }
    let found = root["type"].to_string();
    Err(format!(
        "its root has \"type\": {}, and arguments are always an object: use \"object\", in Rust a \
         struct with named fields",
        crate::arguments::cut(&found, 80)
    ))
}

/// A dialect that is not known would have to be fetched.
fn drop_unknown_dialect(schema: &mut Value) {
    if let Value::Object(root) = schema
        && !matches!(root.get("$schema"), Some(Value::String(uri)) if known_draft(uri).is_some())
    {
        root.remove("$schema");
    }
}

fn dialect(schema: &Value) -> Draft {
    schema
        .get("$schema")
        .and_then(Value::as_str)
        .and_then(known_draft)
        .unwrap_or(Draft::Draft202012)
}

fn known_draft(uri: &str) -> Option<Draft> {
    let (_, place) = uri.trim_end_matches('#').split_once("://")?;
    Some(match place {
        "json-schema.org/draft-04/schema" => Draft::Draft4,
        "json-schema.org/draft-06/schema" => Draft::Draft6,
        "json-schema.org/draft-07/schema" => Draft::Draft7,
        "json-schema.org/draft/2019-09/schema" => Draft::Draft201909,
        "json-schema.org/draft/2020-12/schema" => Draft::Draft202012,
        _ => return None,
    })
}

/// One way in which arguments break their schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentFault {
    /// Where, as a JSON pointer; empty for the arguments as a whole. For a property that is missing
    /// or not allowed, its own place.
    pub pointer: String,
    /// What was expected there: `must be an integer, not a string`.
    pub expectation: String,
}

impl ArgumentFault {
    /// A fault at a place.
    pub fn new(pointer: impl Into<String>, expectation: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            expectation: expectation.into(),
        }
    }
}

impl fmt::Display for ArgumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            return write!(f, "the arguments {}", self.expectation);
        }
        write!(f, "{} {}", self.pointer, self.expectation)
    }
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
