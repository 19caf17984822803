//! Where each case stands that is not, or not wholly, a file.

/// All cases. Their numbers have gaps.
pub(crate) const CASES: &[&str] = &[
    "c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09", "c10", "c11", "c12", "c13",
    "c14", "c15", "c16", "c17", "c18", "c19", "c20", "fi01", "fi02", "fi03", "fi04", "fi05",
    "fi06", "fi07", "fi08", "fi09", "fi10", "fi11", "fi12", "fi14", "fi15", "fi16", "fi19", "fi20",
    "fi21", "fi23", "fi24", "fi25", "fx01", "fx02", "fx03", "fx05", "fx07", "fx08", "fx11", "fx12",
    "te01", "te02", "te03", "te04", "te05", "te06", "te07", "te09", "te11", "te12", "te13", "te14",
    "te15", "te16", "te17", "te18", "te20", "te22", "te23", "te25",
];

/// A case, or a part of one, that is no file.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// The case.
    pub(crate) id: &'static str,
    /// Which part of it; empty if all of it.
    pub(crate) part: &'static str,
    /// Where it stands.
    pub(crate) place: Place,
    /// Why.
    #[expect(dead_code, reason = "for those who read the table")]
    pub(crate) why: &'static str,
}

/// Where a case stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The Rust test whose name begins so.
    Rust(&'static str),
    /// The issue with this number, or the layer, adds the file.
    #[expect(dead_code, reason = "for those who read the table")]
    Later(&'static str),
}

const fn rust(
    id: &'static str,
    part: &'static str,
    test: &'static str,
    why: &'static str,
) -> Elsewhere {
    let place = Place::Rust(test);
    Elsewhere {
        id,
        part,
        place,
        why,
    }
}

const fn later(
    id: &'static str,
    part: &'static str,
    issue: &'static str,
    why: &'static str,
) -> Elsewhere {
    let place = Place::Later(issue);
    Elsewhere {
        id,
        part,
        place,
        why,
    }
}

const HANDLER: &str = "a file has loops, no agent runtime";
const PROVIDER: &str = "belongs to the provider that has it";
const RETRY: &str = "the loop itself never retries";
const KINDS: &str = "a kind is a type, and a file has values";

/// Every case, or part of one, that is no file.
pub(crate) const ELSEWHERE: &[Elsewhere] = &[
    rust(
        "c01",
        "the process is killed",
        "c01_the_process_is_killed",
        "a file kills no process",
    ),
    later(
        "c07",
        "signed values",
        "crates/framework/src/sealed/tests.rs",
        "a file has no keys",
    ),
    rust(
        "c09",
        "context object and memory provider",
        "c09_variant_with_a_context_provider",
        "a file has no agent runtime",
    ),
    rust(
        "c10",
        "an error text of 100 KB",
        "c10_the_error_text_is_bounded",
        "nobody reads such a file",
    ),
    rust(
        "c17",
        "random orders of completion",
        "c17_the_request_is_the_same",
        "they are drawn",
    ),
    rust(
        "c17",
        "the session in a store",
        "c17_the_session_is_reloaded",
        "a file has no agent runtime",
    ),
    later(
        "c18",
        "the step that breaks and is retried",
        "retry layer",
        RETRY,
    ),
    later("c19", "the retry", "retry layer", RETRY),
    later(
        "c20",
        "",
        "reduction layer",
        "trimming is a layer of its own",
    ),
    rust(
        "fi08",
        "hosted tools stay in the last request",
        "fi08_tools_of_the_server",
        PROVIDER,
    ),
    rust(
        "fi12",
        "a tool hides one behind it",
        "fi12_additional_tools_are",
        "a file names a tool once",
    ),
    rust("fi15", "", "fi15_", PROVIDER),
    rust("fi16", "", "fi16_", PROVIDER),
    rust(
        "fi19",
        "a gate inside a namespace",
        "fi19_a_gate_survives",
        "wrappers are types",
    ),
    rust(
        "fi19",
        "a gate inside a wrapper",
        "fi19_approval_is_asked_for_the_wrapped",
        "wrappers are types",
    ),
    rust(
        "fx11",
        "nested agents whose own handler approves",
        "fx11_nested_loops",
        HANDLER,
    ),
    rust("fx12", "", "fx12_", "random scripts are drawn, not written"),
    rust("te03", "the kinds as types", "te02_te03_each_kind", KINDS),
    rust("te04", "", "te04_enhanced_wins", KINDS),
    rust(
        "te05",
        "the kinds as types",
        "te05_middleware_runs_in_order",
        KINDS,
    ),
    rust(
        "te12",
        "panics of each kind and of middleware",
        "te12_a_panic",
        KINDS,
    ),
    rust(
        "te14",
        "options reach their tools",
        "te14_the_tools_of_a_call",
        "options are types",
    ),
    rust(
        "te15",
        "the handler, and outside a call",
        "te15_the_call_id",
        "a context is read",
    ),
    rust("te20", "in a session of an agent runtime", "te20_", HANDLER),
];
