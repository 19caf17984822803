//! The JSON of Chat Completions replies: a fast typed reading of common frames, a loose one of all
//! others, both into the same [`Reply`](crate::response::Reply).

pub(crate) mod chunk;
pub(crate) mod finish;
pub(crate) mod loose;
pub(crate) mod usage;

#[cfg(test)]
mod tests;
