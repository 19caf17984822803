//! Token counts, under the names that servers have for them.

use raf_core::Usage;

use raf_wire::{Json, JsonScanner};

/// Counts of the object itself, in the order of [`Found::counts`].
const COUNTS: [&str; 8] = [
    "prompt_tokens",
    "input_tokens",
    "completion_tokens",
    "output_tokens",
    "total_tokens",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "reasoning_tokens",
];

/// Counts within members that are objects, in the order of [`Found::details`].
const DETAILS: [(&str, &str); 4] = [
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
];

/// What was found in a usage object.
#[derive(Default)]
struct Found {
    counts: [Option<u64>; COUNTS.len()],
    details: [Option<u64>; DETAILS.len()],
    usage: Usage,
}

/// Reads a usage object; nothing if it counts nothing.
///
/// Input and output are `prompt_tokens` and `completion_tokens`, or `input_tokens` and
/// `output_tokens` (gateways bridging the Responses API). A total that is missing is their sum.
/// Cached tokens: `prompt_tokens_details.cached_tokens` (OpenAI), `prompt_cache_hit_tokens`
/// (DeepSeek), `cached_tokens` (Moonshot). Reasoning: `completion_tokens_details.reasoning_tokens`,
/// or `reasoning_tokens` beside the others (`SGLang`). Other whole counts are kept as extras.
pub(crate) fn read(value: &Json) -> Option<Usage> {
    let Json::Object(members) = value else {
        return None;
    };
    let mut found = Found::default();
    for (count, name) in found.counts.iter_mut().zip(COUNTS) {
        *count = value.get(name).and_then(Json::as_count);
    }
    for (count, (object, name)) in found.details.iter_mut().zip(DETAILS) {
        *count = value.get(object).and_then(|of| of.get(name)?.as_count());
    }
    for (name, value) in members {
        if let (false, Some(count)) = (COUNTS.contains(&name.as_str()), value.as_count()) {
            found.usage.extra.insert(name.clone(), count);
        }
    }
    found.settle()
}

/// Reads a usage object in place into what [`read`] makes of it: `None` where it is not in its plain form,
/// whole numbers and each member once.
pub(crate) fn scan(scanner: &mut JsonScanner<'_>, usage: &mut Option<Usage>) -> Option<()> {
    if scanner.null() {
        return Some(());
    }
    let mut found = Found::default();
    let mut has_count = [false; COUNTS.len()];
    let mut has_object = [false; DETAILS.len()];
    scanner.object(|scanner, name| {
        if let Some(at) = COUNTS.iter().position(|of| *of == name) {
            first(&mut has_count[at])?;
            return count(scanner, &mut found.counts[at]);
        }
        if let Some(at) = DETAILS.iter().position(|(of, _)| *of == name) {
            first(&mut has_object[at])?;
            return detail(scanner, DETAILS[at].1, &mut found.details[at]);
        }
        let raw = scanner.raw()?;
        match raw.as_bytes().first()? {
            b'{' | b'[' | b'n' | b't' | b'f' => {}
            b'0'..=b'9' => {
                found.usage.extra.insert(name.to_owned(), raw.parse().ok()?);
            }
            _ => return None,
        }
        Some(())
    })?;
    *usage = found.settle();
    Some(())
}

fn count(scanner: &mut JsonScanner<'_>, count: &mut Option<u64>) -> Option<()> {
    if !scanner.null() {
        *count = Some(scanner.count()?);
    }
    Some(())
}

fn detail(scanner: &mut JsonScanner<'_>, name: &str, found: &mut Option<u64>) -> Option<()> {
    if scanner.null() {
        return Some(());
    }
    let mut has_come = false;
    scanner.object(|scanner, member| {
        if member != name {
            return scanner.skip();
        }
        first(&mut has_come)?;
        count(scanner, found)
    })
}

/// Marks that a member has come, unless it had.
fn first(has_come: &mut bool) -> Option<()> {
    (!std::mem::replace(has_come, true)).then_some(())
}

impl Found {
    fn settle(self) -> Option<Usage> {
        let [
            prompt,
            input,
            completion,
            output,
            total,
            cache_hit,
            cached,
            reasoning,
        ] = self.counts;
        let [of_prompt, of_input, of_completion, of_output] = self.details;
        let mut usage = self.usage;
        usage.input_tokens = prompt.or(input);
        usage.output_tokens = completion.or(output);
        usage.total_tokens = total.or_else(|| {
            let (input, output) = (usage.input_tokens?, usage.output_tokens?);
            Some(input.saturating_add(output))
        });
        usage.cached_tokens = of_prompt.or(of_input).or(cache_hit).or(cached);
        usage.reasoning_tokens = of_completion.or(of_output).or(reasoning);
        (!usage.is_empty()).then_some(usage)
    }
}
