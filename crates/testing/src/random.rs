//! Checks over random values, drawn so that what failed can be found again.

use std::env::var;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

const CASES: &str = "RAF_PROPERTY_CASES";
const SEED: &str = "RAF_PROPERTY_SEED";

/// A runner of as many cases as the environment's `RAF_PROPERTY_CASES` says, else of `cases`. They are the
/// same in each run unless `RAF_PROPERTY_SEED` is another number than 1.
pub fn runner(cases: u32) -> TestRunner {
    let asked = number(CASES).and_then(|number| u32::try_from(number).ok());
    runner_of(asked.unwrap_or(cases), number(SEED).unwrap_or(1))
}

fn runner_of(cases: u32, seed: u64) -> TestRunner {
    TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..Config::default()
    })
}

/// Holds a check against random values of a [`runner`].
///
/// # Panics
/// If a value fails it: with the smallest such value that was found, and with the seed that draws it again.
pub fn for_all<S: Strategy>(
    cases: u32,
    values: &S,
    check: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let mut runner = runner(cases);
    let (cases, seed) = (runner.config().cases, runner.config().rng_seed);
    if let Err(error) = runner.run(values, check) {
        panic!("{CASES}={cases} {SEED}={seed} draws it again: {error}");
    }
}

fn number(name: &str) -> Option<u64> {
    var(name).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::num::u64::ANY;
    use proptest::test_runner::TestCaseError;

    use super::{for_all, runner_of};

    fn drawn(seed: u64) -> Vec<u64> {
        let values = RefCell::new(Vec::new());
        let ran = runner_of(5, seed).run(&ANY, |value| {
            values.borrow_mut().push(value);
            Ok(())
        });
        ran.expect("nothing fails");
        values.into_inner()
    }

    #[test]
    fn a_seed_draws_the_same_values_again() {
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }

    #[test]
    fn a_failure_names_its_seed() {
        let fails = || {
            for_all(3, &ANY, |value| {
                Err(TestCaseError::fail(format!("not {value}")))
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(fails)).expect_err("it fails");
        let text = panic.downcast_ref::<String>().expect("a text");
        assert!(text.contains("RAF_PROPERTY_SEED="), "{text}");
        // The smallest value that fails.
        assert!(text.contains("not 0"), "{text}");
    }
}
