//! Defaults, the run's own options and overrides, laid over one another: pure.

use raf_core::{ChatClientRunOptions, ToolDeclaration};
use raf_tools::ToolOptionsExt;

/// The options that go on: see the table of
/// [`ConfiguringChatClient`](crate::ConfiguringChatClient).
pub(crate) fn merge(
    defaults: &ChatClientRunOptions,
    run: &ChatClientRunOptions,
    overrides: &ChatClientRunOptions,
) -> ChatClientRunOptions {
    /// The strongest value that is set, of each field that holds one value or none.
    macro_rules! single_values {
        ($options:ident: $($field:ident),* $(,)?) => {$(
            $options.$field = [overrides, run, defaults]
                .into_iter()
                .find_map(|from| from.$field.clone());
        )*};
    }
    // What is not named below is the run's own: cancellation, answers, what it resumes.
    let mut options = run.clone();
    single_values!(
        options: model,
        temperature,
        top_p,
        max_output_tokens,
        seed,
        frequency_penalty,
        presence_penalty,
        tool_choice,
        parallel_tool_calls,
        response_format,
        reasoning_effort,
        session_id,
        deadline,
    );
    let stop = [overrides, run, defaults]
        .into_iter()
        .find(|from| !from.stop.is_empty());
    options.stop = stop.map(|from| from.stop.clone()).unwrap_or_default();

    options.tools = Vec::new();
    options.extra_body.clear();
    options.extensions = defaults.extensions.clone();
    options.extensions.lay_over(&run.extensions);
    options.extensions.lay_over(&overrides.extensions);
    for from in [defaults, run, overrides] {
        for tool in &from.tools {
            set_tool(&mut options.tools, tool);
        }
        for (name, value) in &from.extra_body {
            options.extra_body.insert(name.clone(), value.clone());
        }
    }
    add_sources(options, [overrides, run, defaults])
}

fn set_tool(tools: &mut Vec<ToolDeclaration>, tool: &ToolDeclaration) {
    match tools.iter_mut().find(|known| known.name() == tool.name()) {
        Some(known) => *known = tool.clone(),
        None => tools.push(tool.clone()),
    }
}

/// Sources of tools are one extension, whose values add up instead of replacing one another: the
/// strongest ones stand there already, those of the weaker places go behind them.
fn add_sources(
    options: ChatClientRunOptions,
    strongest_first: [&ChatClientRunOptions; 3],
) -> ChatClientRunOptions {
    strongest_first
        .into_iter()
        .map(ToolOptionsExt::provider_tools)
        .filter(|sources| !sources.is_empty())
        .skip(1)
        .flatten()
        .fold(options, ToolOptionsExt::with_provider_tools)
}

#[cfg(test)]
mod tests;
