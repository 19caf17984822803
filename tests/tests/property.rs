//! Random scripts never break the contract (A1, B1, B2, B3, D2 and what else is checked of every
//! leg), and planted faults are caught.

use std::panic;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestCaseError;
use raf_testing::random::{for_all, runner};
use raf_tests::Form;
use raf_tests::faults::{Fault, Plant};
use raf_tests::random::{RandomCase, SCRIPTED_PANIC, cases};

/// How many cases are played, unless the environment says otherwise.
const CASES: u32 = 256;

/// Panics of bodies belong to the scripts: they are not printed.
fn quiet_scripted_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(SCRIPTED_PANIC) {
            usual(info);
        }
    }));
}

fn check(case: &RandomCase) -> Result<(), TestCaseError> {
    let stream = case.play(Form::Stream, None);
    if !stream.faults.is_empty() {
        return Err(TestCaseError::fail(format!(
            "{:#?}\nevents {:#?}",
            stream.faults, stream.events
        )));
    }
    let fold = case.play(Form::Fold, None);
    if !fold.faults.is_empty() {
        return Err(TestCaseError::fail(format!("{:#?}", fold.faults)));
    }
    if stream.summary != fold.summary {
        return Err(TestCaseError::fail(format!(
            "the stream came to {:#?}, get_response to {:#?}",
            stream.summary, fold.summary
        )));
    }
    Ok(())
}

#[test]
fn fx12_random_scripts_never_break_the_contract() {
    quiet_scripted_panics();
    for_all(CASES, &cases(), |case| check(&case));
}

/// Of each planted fault so many cases are looked at, if it comes to bear in so many.
const PLANTED: usize = 32;

/// Each fault is reported in every case in which it comes to bear.
#[test]
fn planted_faults_are_caught() {
    quiet_scripted_panics();
    let mut runner = runner(CASES);
    let cases: Vec<RandomCase> = (0..2 * CASES)
        .map(|_| cases().new_tree(&mut runner).unwrap().current())
        .collect();
    for fault in Fault::ALL {
        let (mut planted, mut missed) = (0, Vec::new());
        for case in &cases {
            if planted == PLANTED {
                break;
            }
            let plant = Plant::new(fault);
            let played = case.play(Form::Stream, Some(&plant));
            if plant.count() > 0 {
                planted += 1;
                if played.faults.is_empty() {
                    missed.push((case, played.events));
                }
            }
        }
        assert!(
            planted >= 10,
            "{fault:?} came to bear in {planted} cases only"
        );
        assert!(
            missed.is_empty(),
            "{fault:?} was missed in {} of {planted} cases: {:#?}",
            missed.len(),
            missed.first()
        );
    }
}
