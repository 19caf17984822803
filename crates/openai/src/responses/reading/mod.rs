//! From the events of a response to updates: items by id and index, texts said once, calls at the end.

mod call;
mod close;
mod delta;
mod ending;
mod event;
mod failure;
mod item;
mod output;
mod plain;
mod reply;
mod spoken;

pub(crate) use reply::{Asked, ResponsesReply};

#[cfg(test)]
mod tests;
