//! Legs that die behind one of their steps and are taken up with its value, over every prefix of every
//! case: the same steps under the same names, and nothing of it to be noticed (steps.md, K1 to K14).

#![expect(
    clippy::print_stdout,
    reason = "what was played is counted where the tests are read"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Failed, Trial};
use raf_framework::FunctionInvokingChatClient;
use raf_scenarios::{Runner, Scenario};
use raf_testing::ReplayedChatClient;

/// How many legs have to be taken up over all cases at least: fewer mean that cases are lost.
const LEGS_TAKEN_UP: usize = 2_000;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    std::panic::set_hook(Box::new(|_| {}));
    let total = Arc::new(Mutex::new(0));
    let whole = arguments.filter.is_none() && arguments.skip.is_empty();
    let trials = files()
        .into_iter()
        .map(|path| trial(path, &total))
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let total = *total.lock().expect("no test panicked");
    println!("{total} legs were taken up");
    if whole && total < LEGS_TAKEN_UP {
        println!("error: at least {LEGS_TAKEN_UP} were to be");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let entries = std::fs::read_dir(folder).expect("tests/scenarios is a folder");
    let paths = entries.map(|entry| entry.expect("its files can be listed").path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files
}

fn trial(path: PathBuf, total: &Arc<Mutex<usize>>) -> Trial {
    let total = Arc::clone(total);
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Trial::test(format!("k_every_prefix_of_{name}"), move || {
        let mut failed = Vec::new();
        for scenario in Scenario::load(&path)? {
            let (mut count, mut batches) = (0, BTreeSet::new());
            for behind in 1.. {
                let played = play(&scenario, behind, None);
                count += played.taken_up;
                batches.extend(played.batches);
                failed.extend(played.faults);
                if !failed.is_empty() || played.most_steps <= behind {
                    break;
                }
            }
            for (behind, seed) in batches.into_iter().zip(11..) {
                let played = play(&scenario, behind, Some(seed));
                count += played.taken_up;
                failed.extend(played.faults);
            }
            *total.lock().expect("no test panicked") += count;
        }
        if failed.is_empty() {
            return Ok(());
        }
        Err(Failed::from(failed.join("\n")))
    })
}

/// A case that was played, with legs that were taken up.
#[derive(Default)]
struct Played {
    most_steps: usize,
    batches: BTreeSet<usize>,
    taken_up: usize,
    faults: Vec<String>,
}

/// Plays a case with legs that die behind so many steps.
fn play(scenario: &Scenario, behind: usize, shuffle: Option<u64>) -> Played {
    let loops: Arc<Mutex<Vec<ReplayedChatClient>>> = Arc::default();
    let made = Arc::clone(&loops);
    let runner = Runner::new()
        .with_http(false)
        .with_stores(false)
        .with_stack(move |parts| {
            let client =
                FunctionInvokingChatClient::with_options(parts.model, parts.tools, parts.options);
            let client = ReplayedChatClient::new(client, behind);
            let client = match shuffle {
                Some(seed) => client.shuffling(seed),
                None => client,
            };
            made.lock().expect("no test panicked").push(client.clone());
            client
        });
    let report = runner.play(scenario);
    let mut played = Played::default();
    if !report.passed() {
        let order = shuffle.map_or(String::new(), |seed| format!(", shuffled by {seed}"));
        let fault = format!("legs that die behind step {behind}{order}: {report}");
        played.faults.push(fault);
    }
    for client in loops.lock().expect("no test panicked").iter() {
        played.most_steps = played.most_steps.max(client.most_steps());
        played.batches.extend(client.batches());
        played.taken_up += client.taken_up();
        let steps = client.faults();
        let of_steps = steps
            .iter()
            .map(|fault| format!("behind {behind}: {fault}"));
        played.faults.extend(of_steps);
    }
    played
}
