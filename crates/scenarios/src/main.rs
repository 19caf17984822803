//! Plays scenario files and folders, a line per case: `raf-scenarios PATH…`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what the program is for"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use raf_scenarios::{Runner, Scenario};

const USAGE: &str = "\
usage: raf-scenarios [--no-http] [--no-stores] [--postgres URL] PATH…

Plays scenario files, and all files below folders that end in .yaml or .yml, and prints a line per
case. Exits with 0 if all is as expected, with 1 if a case differs or a file cannot be read, with 2 if
it was called wrongly.

  --no-http       not over HTTP on loopback: the scripted client alone
  --no-stores     not over durable stores in memory and in files of SQLite
  --postgres URL  over PostgreSQL too: postgres://user@host:port/database
  --schema        prints the JSON Schema of the files, and nothing else";

fn main() -> ExitCode {
    let mut paths = Vec::new();
    let mut runner = Runner::new();
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            Some("--schema") => {
                println!("{}", raf_scenarios::json_schema());
                return ExitCode::SUCCESS;
            }
            Some("--no-http") => runner = runner.with_http(false),
            Some("--no-stores") => runner = runner.with_stores(false),
            Some("--postgres") => match arguments.next().map(std::ffi::OsString::into_string) {
                Some(Ok(url)) => runner = runner.with_postgres(url),
                _ => return misused("--postgres takes the address of a server"),
            },
            Some(option) if option.starts_with('-') => {
                return misused(&format!("there is no option {option}"));
            }
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    if paths.is_empty() {
        return misused("name a file or a folder");
    }
    let mut files = Vec::new();
    for path in &paths {
        if let Err(error) = collect(path, &mut files) {
            return misused(&format!("{}: {error}", path.display()));
        }
    }
    if files.is_empty() {
        return misused("there is no .yaml or .yml file there");
    }
    // What a body panics with stands in the report, where it matters.
    std::panic::set_hook(Box::new(|_| {}));
    play(&runner, &files)
}

fn misused(text: &str) -> ExitCode {
    eprintln!("raf-scenarios: {text}\n\n{USAGE}");
    ExitCode::from(2)
}

/// The files of a path: itself, or all below it, in order.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !std::fs::metadata(path)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries: std::io::Result<Vec<_>> = std::fs::read_dir(path)?.collect();
    let mut below: Vec<PathBuf> = entries?.iter().map(std::fs::DirEntry::path).collect();
    below.sort();
    for path in below {
        let is_yaml = path
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml");
        if path.is_dir() || is_yaml {
            collect(&path, files)?;
        }
    }
    Ok(())
}

fn play(runner: &Runner, files: &[PathBuf]) -> ExitCode {
    let (mut cases, mut failed) = (0, 0);
    for file in files {
        match Scenario::load(file) {
            Err(error) => {
                failed += 1;
                println!("FAILED {error}");
            }
            Ok(scenarios) => {
                for scenario in scenarios {
                    cases += 1;
                    let report = runner.play(&scenario);
                    failed += usize::from(!report.passed());
                    println!("{report}");
                }
            }
        }
    }
    println!("{cases} cases of {} files, {failed} failed", files.len());
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    }
}
