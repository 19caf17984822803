//! The quickstart as a newcomer runs it: with each provider, without a key, with the address of an endpoint,
//! and with a wrong one.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use raf_testing::{EndpointWire, HttpServer, Reply, ScriptedEndpoint};

/// The example that `cargo test` has built beside these tests, run in this environment.
fn quickstart(variables: &[(&str, &str)]) -> Output {
    let tests = std::env::current_exe().expect("a test knows where it is");
    let built = tests.parent().and_then(Path::parent);
    let example = built
        .expect("it is in deps")
        .join("examples")
        .join(format!("quickstart{}", std::env::consts::EXE_SUFFIX));
    assert!(
        example.is_file(),
        "the examples are not built: run `cargo test -p raf-examples`, without `--test`"
    );
    let mut command = Command::new(example);
    for name in [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_MODEL",
        "RAF_PROVIDER",
        "RUST_LOG",
    ] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    command.stdin(Stdio::null());
    command.output().expect("it can be run")
}

fn lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn without_a_key_it_says_so_and_plays_the_whole_run() {
    plays_the_whole_run(&[], "OPENAI_API_KEY");
}

#[test]
fn every_provider_plays_the_whole_run_without_a_key() {
    for (provider, key) in [
        ("openai", "OPENAI_API_KEY"),
        ("responses", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
    ] {
        plays_the_whole_run(&[("RAF_PROVIDER", provider)], key);
    }
}

#[track_caller]
fn plays_the_whole_run(variables: &[(&str, &str)], key: &str) {
    let output = quickstart(variables);
    let lines = lines(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(lines[0].contains("scripted endpoint"), "{lines:#?}");
    assert!(lines[0].contains(key), "{lines:#?}");
    let at = |words: &str| {
        let found = lines.iter().position(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("'{words}' is not in {lines:#?}"))
    };
    // Both tools run before either has returned: in parallel.
    let started = at("weather runs").max(at("next_train runs"));
    assert!(started < at("weather returned").min(at("next_train returned")));
    assert!(at("18 °C and sunny in Bern. The train: Zurich to Bern") > started);
    // Nobody is at a terminal: the gated call is approved by itself, then it runs.
    assert!(at("may buy_ticket run with") < at("buy_ticket runs"));
    assert!(at("buy_ticket runs") < at("The ticket: bought: Zurich to Bern, 10:02."));
    let last = lines.last().map_or("", String::as_str);
    assert!(last.contains("712 tokens in, 122 out"), "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_an_address_it_talks_to_that_endpoint() {
    let endpoint = ScriptedEndpoint::chat_completions([Reply::text("Sunny, at 10:02.")]);
    let url = endpoint.url();
    let variables = [("OPENAI_BASE_URL", url.as_str()), ("OPENAI_MODEL", "small")];
    let output = tokio::task::block_in_place(|| quickstart(&variables));
    let lines = lines(&output.stdout);
    assert_eq!(lines[0], format!("Talking to small at {url}."));
    assert!(
        lines.iter().any(|line| line == "Sunny, at 10:02."),
        "{lines:#?}"
    );
    endpoint.assert_done();
    let request = &endpoint.requests()[0];
    assert_eq!(request.options.model.as_deref(), Some("small"));
    assert_eq!(
        request.tool_names(),
        ["weather", "next_train", "buy_ticket"]
    );
}

#[test]
fn with_a_wrong_address_it_says_what_to_do() {
    let url = HttpServer::refused_url();
    let output = quickstart(&[("OPENAI_BASE_URL", &url), ("OPENAI_MODEL", "small")]);
    assert!(!output.status.success());
    let lines = lines(&output.stderr);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("OPENAI_BASE_URL"), "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_provider_speaks_its_own_wire() {
    for (provider, wire, prefix) in [
        ("openai", EndpointWire::ChatCompletions, "OPENAI"),
        ("responses", EndpointWire::Responses, "OPENAI"),
        ("anthropic", EndpointWire::Messages, "ANTHROPIC"),
    ] {
        let endpoint = ScriptedEndpoint::speaking(wire, [Reply::text("Sunny, at 10:02.")]);
        let (address, model) = (format!("{prefix}_BASE_URL"), format!("{prefix}_MODEL"));
        let url = endpoint.url();
        let variables = [
            ("RAF_PROVIDER", provider),
            (&address, &url),
            (&model, "small"),
        ];
        let output = tokio::task::block_in_place(|| quickstart(&variables));
        assert!(output.status.success(), "{provider}: {output:?}");
        endpoint.assert_done();
    }
}

#[test]
fn a_provider_that_is_none_is_a_clear_error() {
    let output = quickstart(&[("RAF_PROVIDER", "gemini")]);
    assert!(!output.status.success());
    let lines = lines(&output.stderr);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    for word in [
        "'gemini'",
        "RAF_PROVIDER",
        "openai",
        "responses",
        "anthropic",
    ] {
        assert!(lines[0].contains(word), "'{word}' is not in {lines:#?}");
    }
}
