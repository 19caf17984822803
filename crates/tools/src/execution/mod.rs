//! The execution engine: a batch of calls in, results out.

mod stopping;

pub(crate) use stopping::cancelled;
