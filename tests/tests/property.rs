//! Random scripts never break the contract (A1, B1, B2, B3, D2 and what else is checked of every
//! leg), and planted faults are caught.

use std::panic;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use raf_tests::Form;
use raf_tests::faults::{Fault, Plant};
use raf_tests::random::{RandomCase, SCRIPTED_PANIC, cases};

/// How many cases are played: `RAF_PROPERTY_CASES`, else this.
const CASES: u32 = 256;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The cases are the same in each run unless `RAF_PROPERTY_SEED` says otherwise.
fn runner(cases: u32) -> TestRunner {
    quiet_scripted_panics();
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number("RAF_PROPERTY_SEED", 1).to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

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
    let cases_to_play = number("RAF_PROPERTY_CASES", u64::from(CASES));
    let mut runner = runner(u32::try_from(cases_to_play).unwrap_or(u32::MAX));
    if let Err(error) = runner.run(&cases(), |case| check(&case)) {
        panic!("{error}");
    }
}

/// Of each planted fault so many cases are looked at, if it comes to bear in so many.
const PLANTED: usize = 32;

/// Each fault is reported in every case in which it comes to bear.
#[test]
fn planted_faults_are_caught() {
    let mut runner = runner(1);
    let cases: Vec<RandomCase> = (0..CASES)
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
