#![doc = include_str!("../README.md")]

mod expand;
mod function;
mod settings;

use proc_macro::TokenStream;

/// Makes a typed tool of an async function.
///
/// `async fn weather(city: String) -> String` becomes `fn weather() -> FunctionTool`: call it to get
/// the tool, and change the tool with the methods of `raf_tools::FunctionTool` if need be. The
/// function itself is within, so that a body may call itself by name.
///
/// - The function's doc comment is the tool's description. There must be one, here or as
///   `description`.
/// - Each parameter is a property of the arguments, under its name. Doc comments on parameters are
///   their descriptions. Types are anything that derives `serde::Deserialize` and
///   `schemars::JsonSchema`, owned; an `Option` may be left out. `#[serde(…)]` and `#[schemars(…)]`
///   on a parameter work as on a field: `#[serde(default)]`, `#[schemars(range(min = 1))]`.
/// - A parameter of type `ToolContext`, anywhere, is the context of the call.
/// - It returns what a typed tool may return: see `raf_tools::IntoToolOutput`.
///
/// # Settings
/// `#[tool(name = "…", description = "…", approval, idempotent, exclusive, crate = path)]`
///
/// - `name`: the tool's name. Default: the function's.
/// - `description`: instead of the doc comment.
/// - `approval`: each call waits for a person's yes.
/// - `idempotent`: running the same call twice does no harm.
/// - `exclusive`: nothing of the batch runs beside it.
/// - `crate`: where `raf_tools` is, if it has another name. Default: `::raf_tools`.
///
/// ```
/// use raf_macros::tool;
/// use raf_tools::{ToolContext, ToolError};
///
/// /// Deletes a file.
/// #[tool(approval)]
/// async fn delete(
///     context: ToolContext,
///     /// Where it is, from the root of the project.
///     path: String,
///     #[serde(default)] force: bool,
/// ) -> Result<(), ToolError> {
///     context.progress(format!("deleting {path}"));
///     if !force {
///         return Err(ToolError::tell_model("the file is in use: say `force`"));
///     }
///     Ok(())
/// }
///
/// let tool = delete();
/// # let _ = tool;
/// ```
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, item: TokenStream) -> TokenStream {
    let settings = syn::parse_macro_input!(settings as settings::Settings);
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    function::ToolFunction::new(function)
        .and_then(|function| expand::expand(&settings, &function))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
