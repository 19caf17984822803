//! What the whole-stack tests share: a case played in both forms, its checks, random scripts and
//! planted faults.

pub mod backend;
pub mod canonical;
pub mod case;
pub mod check;
pub mod faults;
pub mod left_out;
pub mod leg;
pub mod pausing;
pub mod polls;
pub mod random;
pub mod watch;

pub use case::{Case, Form, in_both_forms};
pub use leg::Leg;
