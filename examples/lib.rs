//! Programs live beside this file, one `.rs` each.
