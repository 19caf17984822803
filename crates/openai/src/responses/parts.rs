//! The members by which a transcript keeps what a response's items must come back with.

/// Of the data of reasoning and calls: the item as it came.
pub(crate) const ITEM: &str = "item";

/// Where the item stood in its answer, beside the item: pieces may arrive in another order.
pub(crate) const PLACE: &str = "raf_place";

/// The model that made it: reasoning is no other model's to read.
pub(crate) const MODEL: &str = "model";
