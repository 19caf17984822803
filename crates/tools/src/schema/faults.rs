//! What is wrong, in words: short, with a place, and without the values of the arguments.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError, Validator};
use raf_core::ToolDeclaration;
use serde_json::Value;

use super::walk::escape;
use super::{ArgumentFault, CompiledSchema, type_name};
use crate::arguments::{cut, with_article};

/// The most bytes of one expectation.
const MAX_EXPECTATION_BYTES: usize = 200;

/// The most bytes of a place.
const MAX_POINTER_BYTES: usize = 120;

/// How deep alternatives within alternatives are looked into.
const MAX_ALTERNATIVES: usize = 8;

/// The faults of arguments, in the validator's order, each place and expectation once.
pub(super) fn collect(
    validator: &Validator,
    arguments: &Value,
    declaration: &ToolDeclaration,
) -> Vec<ArgumentFault> {
    let mut faults = Faults {
        declaration,
        found: Vec::new(),
    };
    for error in validator.iter_errors(arguments) {
        if faults.is_full() {
            break;
        }
        faults.add(&error, 0);
    }
    if faults.found.is_empty() {
        faults.push("", "do not fit the schema");
    }
    faults.found
}

/// Why a schema is none. Schemas are no secret; the text is cut all the same.
pub(super) fn of_schema(error: &ValidationError<'_>) -> String {
    let mut place = error.instance_path().as_str();
    if place.is_empty() {
        place = "its root";
    }
    let reason = match error.kind() {
        Kind::Format { format } if format == "regex" => {
            "it has a regular expression that is not valid or has look-around or back-references, \
             which are not supported"
                .to_owned()
        }
        Kind::Pattern { .. } => "it has a name of a form that is not allowed".to_owned(),
        _ => error.to_string(),
    };
    format!(
        "at {}: {}",
        cut(place, MAX_POINTER_BYTES),
        cut(&reason, 300)
    )
}

struct Faults<'a> {
    declaration: &'a ToolDeclaration,
    found: Vec<ArgumentFault>,
}

impl Faults<'_> {
    fn is_full(&self) -> bool {
        self.found.len() >= CompiledSchema::MAX_FAULTS
    }

    fn push(&mut self, pointer: &str, expectation: &str) {
        let fault = ArgumentFault::new(
            cut(pointer, MAX_POINTER_BYTES),
            cut(expectation, MAX_EXPECTATION_BYTES),
        );
        if !self.is_full() && !self.found.contains(&fault) {
            self.found.push(fault);
        }
    }

    fn add(&mut self, error: &ValidationError<'_>, depth: usize) {
        let pointer = error.instance_path().as_str();
        match error.kind() {
            Kind::Required { property } => {
                self.push(&required_place(error, property), "is required");
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                let known = self.known_properties(error);
                for name in unexpected.iter().take(CompiledSchema::MAX_FAULTS) {
                    let place = format!("{pointer}/{}", escape(name));
                    self.push(&place, &format!("is not a known property{known}"));
                }
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.add_alternatives(error, context, depth);
            }
            _ => self.push(pointer, &expectation(error)),
        }
    }

    /// None of several forms fits: tells of the one that was meant, if that shows.
    fn add_alternatives(
        &mut self,
        error: &ValidationError<'_>,
        forms: &[Vec<ValidationError<'static>>],
        depth: usize,
    ) {
        let place = error.instance_path().as_str();
        let closest = forms.iter().map(|form| distance(place, form)).min();
        let mut candidates = forms
            .iter()
            .filter(|form| Some(distance(place, form)) == closest);
        let meant = match (candidates.next(), candidates.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        };
        if let Some(form) = meant.filter(|_| depth < MAX_ALTERNATIVES) {
            for error in form {
                self.add(error, depth + 1);
            }
            return;
        }
        if let Some((pointer, values)) = allowed_values(forms) {
            self.push(pointer, &one_of(&values));
            return;
        }
        let required = required_by_all(forms);
        for property in &required {
            self.push(property, "is required");
        }
        if required.is_empty() {
            self.push(place, &allowed_types(place, forms, error.instance()));
        }
    }

    /// The names of the properties that the schema knows beside the one that it does not.
    fn known_properties(&self, error: &ValidationError<'_>) -> String {
        let schema = self.declaration.parameters();
        let place = error.schema_path().as_str();
        let parent = place.rsplit_once('/').map_or("", |(parent, _)| parent);
        let names: Vec<&str> = schema
            .pointer(parent)
            .and_then(|schema| schema.get("properties"))
            .and_then(Value::as_object)
            .map(|properties| properties.keys().map(String::as_str).collect())
            .unwrap_or_default();
        if names.is_empty() {
            return String::new();
        }
        format!(" (known: {})", names.join(", "))
    }
}

/// How far a form is from what arrived: small if the faults lie deep within.
fn distance(place: &str, form: &[ValidationError<'_>]) -> u8 {
    form.iter()
        .map(|error| {
            let is_here = error.instance_path().as_str().len() == place.len();
            match error.kind() {
                Kind::Type { .. } if is_here => 4,
                Kind::Constant { .. } | Kind::FalseSchema => 3,
                Kind::Enum { .. } if is_here => 3,
                Kind::Required { .. } | Kind::AdditionalProperties { .. } if is_here => 2,
                _ => 1,
            }
        })
        .max()
        .unwrap_or(0)
}

/// The values that the forms allow at one place, if that is what tells them apart.
fn allowed_values<'a>(forms: &'a [Vec<ValidationError<'static>>]) -> Option<(&'a str, Vec<Value>)> {
    let mut place = None;
    let mut values = Vec::new();
    for form in forms {
        let mut found = None;
        for error in form {
            match error.kind() {
                Kind::Constant { expected_value } => {
                    found = Some((error, vec![(**expected_value).clone()]));
                }
                Kind::Enum { options } => {
                    found = Some((error, options.as_array().cloned().unwrap_or_default()));
                }
                _ => {}
            }
        }
        let (error, allowed) = found?;
        let here = error.instance_path().as_str();
        if *place.get_or_insert(here) != here {
            return None;
        }
        values.extend(allowed);
    }
    Some((place?, values))
}

/// The places of properties that are missing whichever form was meant.
fn required_by_all(forms: &[Vec<ValidationError<'static>>]) -> Vec<String> {
    let missing = |form: &[ValidationError<'static>]| -> Vec<String> {
        let required = form.iter().filter_map(|error| match error.kind() {
            Kind::Required { property } => Some(required_place(error, property)),
            _ => None,
        });
        required.collect()
    };
    let Some((first, others)) = forms.split_first() else {
        return Vec::new();
    };
    let mut places = missing(first);
    for form in others {
        let also = missing(form);
        places.retain(|place| also.contains(place));
    }
    places
}

fn required_place(error: &ValidationError<'_>, property: &Value) -> String {
    let name = property.as_str().unwrap_or_default();
    format!("{}/{}", error.instance_path().as_str(), escape(name))
}

fn allowed_types(place: &str, forms: &[Vec<ValidationError<'static>>], found: &Value) -> String {
    let mut types: Vec<JsonType> = Vec::new();
    for form in forms {
        for error in form {
            if error.instance_path().as_str() != place {
                continue;
            }
            match error.kind() {
                Kind::Type {
                    kind: TypeKind::Single(r#type),
                } => types.push(*r#type),
                Kind::Type {
                    kind: TypeKind::Multiple(several),
                } => types.extend(several.iter()),
                _ => {}
            }
        }
    }
    types.dedup();
    if types.is_empty() || forms.len() > types.len() {
        return format!("fits none of the {} forms that are allowed", forms.len());
    }
    must_be_of(types.into_iter(), found)
}

fn expectation(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type {
            kind: TypeKind::Single(r#type),
        } => must_be_of([*r#type].into_iter(), error.instance()),
        Kind::Type {
            kind: TypeKind::Multiple(types),
        } => must_be_of(types.iter(), error.instance()),
        Kind::Enum { options } => one_of(options.as_array().map_or(&[], Vec::as_slice)),
        Kind::Constant { expected_value } => one_of(std::slice::from_ref(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of, .. } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        Kind::UniqueItems => "must have no item twice".to_owned(),
        Kind::UnevaluatedItems { .. } => "has items that are not allowed".to_owned(),
        Kind::Contains => "lacks an item that must be there".to_owned(),
        Kind::Pattern { pattern } => {
            format!("must match the regular expression {}", cut(pattern, 120))
        }
        Kind::Format { format } => format!("must be a valid {}", cut(format, 40)),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::Not { .. } => "has a form that is not allowed".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "fits several of the forms that are allowed, and must fit one".to_owned()
        }
        Kind::PropertyNames { .. } => "has a property whose name is not allowed".to_owned(),
        other => format!("does not fit `{}`", cut(other.keyword(), 40)),
    }
}

fn must_be_of(types: impl Iterator<Item = JsonType>, found: &Value) -> String {
    let allowed: Vec<String> = types.map(|r#type| with_article(r#type.as_str())).collect();
    let found = match found {
        Value::Number(number) if !(number.is_i64() || number.is_u64()) => "number with a fraction",
        other => type_name(other),
    };
    format!(
        "must be {}, not {}",
        allowed.join(" or "),
        with_article(found)
    )
}

fn one_of(values: &[Value]) -> String {
    let mut text = String::from(if values.len() == 1 {
        "must be "
    } else {
        "must be one of "
    });
    for (index, value) in values.iter().enumerate() {
        let value = value.to_string();
        if text.len() + value.len() > MAX_EXPECTATION_BYTES - 30 {
            text.push_str("… (");
            text.push_str(&values.len().to_string());
            text.push_str(" in all)");
            break;
        }
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(&value);
    }
    text
}
