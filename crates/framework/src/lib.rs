#![doc = include_str!("../README.md")]

mod function_invoking;

pub use function_invoking::{FunctionInvokingChatClient, FunctionInvokingOptions};
