//! What a tool's function may return.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::error::Error as StdError;
use std::sync::Arc;

use raf_core::Content;
use serde::Serialize;
use serde_json::Value;

use crate::error::ToolError;
use crate::output::ToolOutput;

/// What the function of a tool may return:
///
/// - `Result<T, E>`, where `T` is any type that serialises, or a [`ToolOutput`], and `E` is any
///   error: `?` works on all. A [`ToolError`] decides what the model reads; of any other error it
///   reads that the tool failed, and the detail goes to the log;
/// - a plain value: text, numbers, `bool`, `()`, `Option`, lists and maps of what serialises,
///   [`Value`], [`ToolOutput`];
/// - [`Json`] around any other type that serialises.
///
/// How a value reaches the model: text as it is, without quotes; `()` as a note that it worked;
/// `Vec<Content>` and `Content` as typed parts; everything else as JSON. `None` is JSON `null`.
#[diagnostic::on_unimplemented(
    message = "a tool's function cannot return `{Self}`",
    label = "not the return value of a tool",
    note = "return `Result<T, E>` with a `T: serde::Serialize` and any error type, or wrap the \
            value in `raf_tools::Json`"
)]
pub trait IntoToolOutput {
    /// The output.
    ///
    /// # Errors
    /// The function's own error, or that its value does not serialise.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

/// What a tool's function may return within `Ok`: any type that serialises, or a [`ToolOutput`].
#[diagnostic::on_unimplemented(
    message = "a tool's function cannot return `{Self}`",
    label = "does not implement `serde::Serialize`",
    note = "derive `serde::Serialize` on it, or make a `raf_tools::ToolOutput` of it"
)]
pub trait IntoToolValue {
    /// The output.
    ///
    /// # Errors
    /// The value does not serialise.
    fn into_tool_value(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolValue for ToolOutput {
    fn into_tool_value(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize + 'static> IntoToolValue for T {
    fn into_tool_value(self) -> Result<ToolOutput, ToolError> {
        let mut slot = Some(self);
        // Types that have a form of their own are told apart by type, as stable Rust has no
        // specialisation; the rest is JSON.
        if take::<()>(&mut slot).is_some() {
            return Ok(ToolOutput::Void);
        }
        if let Some(text) = take::<String>(&mut slot) {
            return Ok(ToolOutput::Text(text));
        }
        if let Some(parts) = take::<Vec<Content>>(&mut slot) {
            return Ok(ToolOutput::Parts(parts));
        }
        if let Some(part) = take::<Content>(&mut slot) {
            return Ok(ToolOutput::Parts(vec![part]));
        }
        match ToolOutput::json(slot)? {
            ToolOutput::Json(Value::String(text)) => Ok(ToolOutput::Text(text)),
            output => Ok(output),
        }
    }
}

/// The value in the slot, if it is of this type.
fn take<T: 'static>(slot: &mut dyn Any) -> Option<T> {
    slot.downcast_mut::<Option<T>>()?.take()
}

impl<T: IntoToolValue, E: Into<Box<dyn StdError + Send + Sync>>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        match self {
            Ok(value) => value.into_tool_value(),
            Err(error) => Err(ToolError::from_error(error)),
        }
    }
}

/// Any value that serialises, as the plain return value of a tool's function. It reaches the model
/// as it would from within `Ok`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Json<T>(pub T);

impl<T: Serialize + 'static> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.0.into_tool_value()
    }
}

macro_rules! plain_return_values {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> IntoToolOutput for $type {
            fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
                self.into_tool_value()
            }
        }
    )*};
}

plain_return_values! {
    [] ToolOutput;
    [] ();
    [] String;
    [] &'static str;
    [] Cow<'static, str>;
    [] Box<str>;
    [] char;
    [] bool;
    [] i8; [] i16; [] i32; [] i64; [] isize;
    [] u8; [] u16; [] u32; [] u64; [] usize;
    [] f32; [] f64;
    [] Value;
    [] serde_json::Map<String, Value>;
    [] Content;
    [T: Serialize + 'static] Option<T>;
    [T: Serialize + 'static] Vec<T>;
    [T: Serialize + 'static] VecDeque<T>;
    [T: Serialize + 'static] BTreeSet<T>;
    [T: Serialize + 'static, S: 'static] HashSet<T, S>;
    [K: Serialize + 'static, V: Serialize + 'static] BTreeMap<K, V>;
    [K: Serialize + 'static, V: Serialize + 'static, S: 'static] HashMap<K, V, S>;
    [T: Serialize + 'static] Box<T>;
    [T: Serialize + 'static] Arc<T>;
    [A: Serialize + 'static, B: Serialize + 'static] (A, B);
    [A: Serialize + 'static, B: Serialize + 'static, C: Serialize + 'static] (A, B, C);
}
