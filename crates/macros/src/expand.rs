//! What `#[tool]` becomes.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned as _;
use syn::{Error, Result, ReturnType};

use crate::function::{Parameter, ToolFunction, place};
use crate::settings::Settings;

/// A function without parameters that makes the tool. Within it: a struct of the properties, the
/// function as it was written, and a closure that leads from one to the other.
pub(crate) fn expand(settings: &Settings, tool: &ToolFunction) -> Result<TokenStream> {
    let function = &tool.function;
    let ident = &function.sig.ident;
    let name = match &settings.name {
        Some(name) => name.value(),
        None => checked_name(ident)?,
    };
    let description = match (&settings.description, &tool.description) {
        (Some(description), _) => description.value(),
        (None, Some(description)) => description.clone(),
        (None, None) => {
            return Err(Error::new(
                place(function),
                "a tool needs a description, by which the model knows when to call it: write a doc \
                 comment",
            ));
        }
    };
    let tools = settings
        .crate_path
        .as_ref()
        .map_or_else(|| quote!(::raf_tools), ToTokens::to_token_stream);

    let parameters = parameters_struct(tool, &tools);
    let (struct_pattern, arguments) = call(tool);
    let mut inner = function.clone();
    inner
        .attrs
        .retain(|attribute| !attribute.path().is_ident("doc"));
    inner.vis = syn::Visibility::Inherited;
    let outer_attributes = function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc") || attribute.path().is_ident("cfg"));
    let visibility = &function.vis;
    // What is wrong with the return type is told where it stands.
    let returned = match &function.sig.output {
        ReturnType::Type(_, r#type) => r#type.span(),
        ReturnType::Default => place(function),
    };
    let make = at(
        returned,
        quote! {
            #tools::tool_fn_with_context(
                #name,
                #description,
                |__context: #tools::ToolContext, #struct_pattern| #ident(#(#arguments),*),
            )
        },
    );
    let changes = [
        settings.approval.then(|| quote!(.with_approval())),
        settings.idempotent.then(|| quote!(.idempotent())),
        settings.exclusive.then(|| quote!(.exclusive())),
    ];
    let changes = changes.into_iter().flatten();
    Ok(quote! {
        #(#outer_attributes)*
        #visibility fn #ident() -> #tools::FunctionTool {
            #parameters
            #[allow(
                clippy::too_many_arguments,
                clippy::unused_async,
                reason = "the parameters are the properties of the tool, which is async by nature"
            )]
            #inner
            #make
            #(#changes)*
        }
    })
}

/// The function's own name, if every provider takes it.
fn checked_name(ident: &syn::Ident) -> Result<String> {
    use syn::ext::IdentExt as _;
    let name = ident.unraw().to_string();
    if name.is_ascii() && name.len() <= 64 {
        return Ok(name);
    }
    Err(Error::new(
        ident.span(),
        "no tool name that every provider takes: give one of 1 to 64 of a-z, A-Z, 0-9, _ and - with \
         `#[tool(name = \"…\")]`",
    ))
}

fn parameters_struct(tool: &ToolFunction, tools: &TokenStream) -> TokenStream {
    let fields: Vec<TokenStream> = tool
        .parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::Context => None,
            Parameter::Property(property) => {
                let attributes = &property.attributes;
                let name = &property.name;
                let r#type = &property.r#type;
                Some(quote!(#(#attributes)* #name: #r#type))
            }
        })
        .collect();
    if fields.is_empty() {
        return quote!(
            type __Parameters = ();
        );
    }
    let private = quote!(#tools::__private);
    let serde = path_text(&quote!(#private::serde));
    let schemars = path_text(&quote!(#private::schemars));
    quote! {
        #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        struct __Parameters {
            #(#fields),*
        }
    }
}

/// The pattern that takes the struct apart, and the arguments that the function is called with.
fn call(tool: &ToolFunction) -> (TokenStream, Vec<TokenStream>) {
    let mut names = Vec::new();
    let arguments = tool
        .parameters
        .iter()
        .map(|parameter| match parameter {
            Parameter::Context => quote!(__context),
            Parameter::Property(property) => {
                let name = &property.name;
                names.push(name);
                quote!(#name)
            }
        })
        .collect();
    let pattern = if names.is_empty() {
        quote!((): __Parameters)
    } else {
        quote!(__Parameters { #(#names),* }: __Parameters)
    };
    (pattern, arguments)
}

/// The same tokens, with errors about them told at a place.
fn at(place: Span, tokens: TokenStream) -> TokenStream {
    let place = place.resolved_at(Span::call_site());
    tokens
        .into_iter()
        .map(|mut token: TokenTree| {
            token.set_span(place);
            token
        })
        .collect()
}

fn path_text(path: &TokenStream) -> String {
    path.to_string().replace(' ', "")
}
