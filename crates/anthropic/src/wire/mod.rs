//! The JSON of replies: a fast typed reading of common deltas, a loose one of all else, both into the
//! same [`Reply`](crate::response::Reply).

pub(crate) mod delta;
pub(crate) mod loose;
pub(crate) mod stop;
pub(crate) mod usage;
