//! The JSON of replies: a fast reading of common deltas, a quick one of other events in their plain form,
//! a loose one of all else, all into the same [`Reply`](crate::response::Reply).

pub(crate) mod delta;
pub(crate) mod loose;
pub(crate) mod plain;
pub(crate) mod stop;
pub(crate) mod usage;
