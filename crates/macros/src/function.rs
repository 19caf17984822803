//! The function that a tool is made of: which parameters are properties, which is the context.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, FnArg, Ident, ItemFn, Lit, Meta, Pat, Result, Type};

/// A function that can be a tool.
pub(crate) struct ToolFunction {
    /// As it was written, without attributes that belong to properties.
    pub(crate) function: ItemFn,
    /// Its parameters, in order.
    pub(crate) parameters: Vec<Parameter>,
    /// Its doc comment.
    pub(crate) description: Option<String>,
}

pub(crate) enum Parameter {
    /// The context of the call.
    Context,
    /// A property of the arguments.
    Property(Box<Property>),
}

pub(crate) struct Property {
    pub(crate) name: Ident,
    pub(crate) r#type: Type,
    /// Doc comments and what `serde` and `schemars` read.
    pub(crate) attributes: Vec<Attribute>,
}

impl ToolFunction {
    pub(crate) fn new(mut function: ItemFn) -> Result<Self> {
        refuse_what_cannot_be_a_tool(&function)?;
        let mut parameters: Vec<Parameter> = Vec::new();
        for input in &mut function.sig.inputs {
            let parameter = parameter(input)?;
            let is_second_context = matches!(parameter, Parameter::Context)
                && parameters
                    .iter()
                    .any(|known| matches!(known, Parameter::Context));
            if is_second_context {
                return Err(Error::new(input.span(), "a tool has one context"));
            }
            parameters.push(parameter);
        }
        let description = doc_text(&function.attrs);
        Ok(Self {
            function,
            parameters,
            description,
        })
    }
}

fn refuse_what_cannot_be_a_tool(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new(
            signature.fn_token.span(),
            "a tool is an `async fn`: what blocks goes into `tokio::task::spawn_blocking`",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(
            signature.generics.span(),
            "a tool has no type parameters or lifetimes: its schema is one",
        ));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new(
            variadic.span(),
            "a tool names all its parameters",
        ));
    }
    Ok(())
}

/// What a parameter is. Takes the attributes of properties off it.
fn parameter(input: &mut FnArg) -> Result<Parameter> {
    let input = match input {
        FnArg::Typed(input) => input,
        FnArg::Receiver(receiver) => {
            return Err(Error::new(
                receiver.span(),
                "a tool has no `self`: for tools that hold state, implement `ITool` or give a \
                 closure to `tool_fn`",
            ));
        }
    };
    if let Type::Reference(reference) = &*input.ty {
        let owned = if is_context(&reference.elem) {
            "`ToolContext`"
        } else {
            "an owned type, such as `String`"
        };
        return Err(Error::new(
            input.ty.span(),
            format!("a tool owns what it is called with: use {owned}"),
        ));
    }
    if is_context(&input.ty) {
        return Ok(Parameter::Context);
    }
    let Pat::Ident(pattern) = &*input.pat else {
        return Err(Error::new(
            input.pat.span(),
            "the name of a parameter is what the model reads: use a plain name",
        ));
    };
    let is_of_property = |attribute: &Attribute| {
        ["doc", "serde", "schemars"]
            .iter()
            .any(|name| attribute.path().is_ident(name))
    };
    let (attributes, others) = input.attrs.drain(..).partition(is_of_property);
    input.attrs = others;
    Ok(Parameter::Property(Box::new(Property {
        name: pattern.ident.clone(),
        r#type: (*input.ty).clone(),
        attributes,
    })))
}

/// Whether a type is, by its last name, the context of a call.
fn is_context(r#type: &Type) -> bool {
    let Type::Path(path) = r#type else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|last| last.ident == "ToolContext" && last.arguments.is_none())
}

/// The text of doc comments, without the space that follows the slashes.
fn doc_text(attributes: &[Attribute]) -> Option<String> {
    let lines = attributes.iter().filter_map(|attribute| {
        let Meta::NameValue(meta) = &attribute.meta else {
            return None;
        };
        let Expr::Lit(literal) = &meta.value else {
            return None;
        };
        match &literal.lit {
            Lit::Str(line) if meta.path.is_ident("doc") => Some(line.value()),
            _ => None,
        }
    });
    let text = lines
        .map(|line| {
            line.strip_prefix(' ')
                .unwrap_or(&line)
                .trim_end()
                .to_owned()
        })
        .collect::<Vec<_>>()
        .join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Where an error about the function as a whole points.
pub(crate) fn place(function: &ItemFn) -> Span {
    function.sig.ident.span()
}
