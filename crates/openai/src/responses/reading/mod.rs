//! From the events of a response to updates: items by id and index, texts said once, calls at the end.

mod asked;
mod call;
mod came;
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

pub(crate) use asked::Asked;
pub(crate) use reply::ResponsesReply;

#[cfg(test)]
mod tests;
