//! Pausing as a state machine: legs, answers right and wrong, new messages, cancels, drops and reloads
//! in any order agree with a small reference that shares no code with the engine (contract A1, D2,
//! E2, E3).

#[path = "approval_state_machine/compare.rs"]
mod compare;
#[path = "approval_state_machine/dropped.rs"]
mod dropped;
#[path = "approval_state_machine/history.rs"]
mod history;
#[path = "approval_state_machine/ops.rs"]
mod ops;
#[path = "approval_state_machine/reference.rs"]
mod reference;
#[path = "approval_state_machine/scripted.rs"]
mod scripted;
#[path = "approval_state_machine/terms.rs"]
mod terms;
#[path = "approval_state_machine/world.rs"]
mod world;

use std::cell::RefCell;
use std::fmt::Write as _;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::ops::{LegOp, legs};
use crate::world::{Shares, World};

/// How many cases each half plays: half of `RAF_PROPERTY_CASES`, else this.
const CASES: u64 = 1_100;

/// What some legs must have been, or the property says nothing about it.
const KINDS: [&str; 22] = [
    "with a right answer",
    "with a partial answer",
    "with a no",
    "with edited arguments",
    "with data that is not enough",
    "with no decision",
    "with a late answer, settled",
    "with a late answer, superseded",
    "with an answer given twice",
    "with an answer to nothing",
    "with an answer to a call's label",
    "with a wrong category",
    "with a malformed answer",
    "with an edit against the schema",
    "with other arguments",
    "with a tampered history",
    "with a forged result",
    "with results",
    "with a new message while calls wait",
    "dropped",
    "cancelled",
    "in a new process",
];

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The cases are the same in each run unless `RAF_PROPERTY_SEED` says otherwise.
fn runner(half: u8) -> TestRunner {
    let cases = number("RAF_PROPERTY_CASES", 2 * CASES).div_ceil(2);
    let config = Config {
        cases: u32::try_from(cases).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number("RAF_PROPERTY_SEED", 1).to_le_bytes());
    seed[8] = half;
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

fn play(legs: &[LegOp]) -> (Vec<String>, Shares) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        let mut world = World::new();
        for (index, leg) in legs.iter().enumerate() {
            world.count("in all");
            let faults = world.play(leg).await;
            if !faults.is_empty() {
                let faults = faults.iter().map(|fault| format!("leg {index}: {fault}"));
                return (faults.collect(), world.shares);
            }
        }
        (Vec::new(), world.shares)
    })
}

#[test]
fn a1_d2_e2_pausing_agrees_with_a_small_reference() {
    agrees(0);
}

/// The other half of the cases, at the same time.
#[test]
fn a1_d2_e2_pausing_agrees_with_a_small_reference_in_the_other_half() {
    agrees(1);
}

fn agrees(half: u8) {
    let shares = RefCell::new(Shares::new());
    let outcome = runner(half).run(&legs(), |legs| {
        let (faults, own) = play(&legs);
        for (kind, count) in own {
            *shares.borrow_mut().entry(kind).or_default() += count;
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(TestCaseError::fail(faults.join("\n")))
        }
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let shares = shares.into_inner();
    let all = shares.get("in all").copied().unwrap_or_default();
    let mut report = format!("{all} legs\n");
    for (kind, count) in &shares {
        let per_mille = count * 1_000 / all.max(1);
        let _ = writeln!(report, "  {kind}: {count} ({per_mille}‰)");
    }
    print_report(&report);
    for kind in KINDS {
        assert!(shares.contains_key(kind), "no leg was {kind}:\n{report}");
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the shares are what a reader of the test wants to see"
)]
fn print_report(report: &str) {
    println!("{report}");
}
