//! How many cases are played over each wire and each store at least, so that a lost one is noticed.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::Failed;
use raf_scenarios::{DurableStore, Runner, Scenario, Wire};
use raf_testing::EndpointWire;

use crate::{files, passed};

/// How many cases each wire has to carry at least: those that need no paused clock, and that hold
/// nothing that no wire has a word for.
const OVER_EACH_WIRE: usize = 73;

/// What is left out is left out for a reason, and is the smaller part.
pub(crate) fn most_are_played_over_each_wire() -> Result<(), Failed> {
    let mut faults = Vec::new();
    let mut cases = 0;
    let mut over: BTreeMap<String, usize> = BTreeMap::new();
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    for file in files() {
        for scenario in Scenario::load(&file)? {
            cases += 1;
            let (ways, reasons) = Runner::new().ways(&scenario);
            let wires: BTreeSet<String> =
                ways.iter().map(|way| format!("{:?}", way.wire)).collect();
            for wire in wires {
                *over.entry(wire).or_default() += 1;
            }
            for reason in reasons {
                *left_out.entry(reason).or_default() += 1;
            }
        }
    }
    for (reason, count) in &left_out {
        println!("{count} cases: {reason}");
    }
    for wire in EndpointWire::ALL {
        let name = format!("{:?}", Wire::Http(wire));
        let count = over.get(&name).copied().unwrap_or(0);
        println!("{count} of {cases} cases over {wire:?}");
        if count < OVER_EACH_WIRE {
            faults.push(format!(
                "only {count} of {cases} cases are played over {wire:?}"
            ));
        }
    }
    passed(&faults)
}

/// How many cases each durable store has to carry at least: all but those of the executor alone.
const OVER_EACH_STORE: usize = 90;

/// The reloads from durable stores that a case is played with, each with how many ways.
pub(crate) fn over_stores(
    runner: &Runner,
    case: &Scenario,
) -> BTreeMap<DurableStore, BTreeSet<String>> {
    let mut stores = BTreeMap::<DurableStore, BTreeSet<String>>::new();
    for way in runner.ways(case).0 {
        if let Some(store) = way.reload.durable() {
            stores.entry(store).or_default().insert(way.to_string());
        }
    }
    stores
}

/// Every case of the loop is played over each durable store, streamed and whole, reopened and killed;
/// what is left out says why.
pub(crate) fn all_are_played_over_each_store() -> Result<(), Failed> {
    // No server is asked for the ways.
    let runner = Runner::new()
        .with_http(false)
        .with_postgres("postgres://nobody@127.0.0.1");
    let (mut cases, mut over) = (0, BTreeMap::<DurableStore, usize>::new());
    let mut faults = Vec::new();
    for file in files() {
        for case in Scenario::load(&file)? {
            cases += 1;
            let stores = over_stores(&runner, &case);
            if stores.is_empty() && runner.ways(&case).1.is_empty() {
                faults.push(format!("{} is over no store for no reason", case.name()));
            }
            for (store, ways) in stores {
                // Memory dies with its process.
                let reloads = if store == DurableStore::Memory { 1 } else { 2 };
                if ways.len() != 2 * reloads {
                    faults.push(format!("{} over {store}: {ways:?}", case.name()));
                }
                *over.entry(store).or_default() += 1;
            }
        }
    }
    for store in DurableStore::ALL {
        let count = over.get(&store).copied().unwrap_or(0);
        println!("{count} of {cases} cases over {store}");
        if count < OVER_EACH_STORE {
            faults.push(format!(
                "only {count} of {cases} cases are played over {store}"
            ));
        }
    }
    passed(&faults)
}
