//! The contract suites, held against what is right and against planted faults.

mod faulty_layers;
mod faulty_tools;
mod plain_provider;
mod suites;
