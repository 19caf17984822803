//! Random cases: what a model may say, what tools may do, which limits hold, and when somebody says
//! stop. A case is a value, so that a failing one is shrunk and printed.

mod draw;
mod script;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use raf_core::{
    AgentResponseUpdate, Cancellation, ChatClientRunOptions, ToolChoice, ToolDeclaration,
};
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tools::ToolLimits;

use crate::case::{Case, Form};
use crate::faults::Plant;
use crate::leg::Leg;

pub use draw::cases;
pub use script::SCRIPTED_PANIC;

/// A random case.
#[derive(Clone, Debug)]
pub struct RandomCase {
    turns: Vec<Turn>,
    replies: Vec<Say>,
    acts: Vec<Act>,
    limits: Limits,
}

/// One turn of the user.
#[derive(Clone, Debug)]
struct Turn {
    stop: Option<StopAt>,
    choice: Option<ToolChoice>,
    deadline: Duration,
    max_output_tokens: Option<u32>,
}

/// When somebody says stop.
#[derive(Clone, Copy, Debug)]
enum StopAt {
    Before,
    Item(usize),
    Flag(usize),
    Time(u64),
}

/// What the model says.
#[derive(Clone, Debug)]
struct Say {
    text: Vec<&'static str>,
    reasoning: bool,
    reset: bool,
    calls: Vec<(&'static str, &'static str, &'static str, bool)>,
    interleaved: bool,
    usage: Option<(u64, u64)>,
    end: End,
}

/// How a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Well,
    Length,
    Filter,
    Cut,
    OpenCallThenCut,
    Error,
    ErrorAtStart,
    Hang,
}

/// What a body does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Empty,
    Text(&'static str),
    Void,
    Json,
    Long,
    Pieces,
    Progress,
    Invalid,
    Failed,
    TellModel,
    Denied,
    Timeout,
    Fatal,
    GivesUp,
    Panics,
    Slow(u64),
    SlowFailure(u64),
    Hangs,
    UntilCancelled,
    IgnoresCancel,
    SlowToStop(u64),
}

#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each option of the loop is drawn by itself"
)]
struct Limits {
    max_rounds: u32,
    wrap_up: bool,
    nudge_empty: bool,
    keep_forcing: bool,
    no_progress_rounds: u32,
    max_failed_rounds: Option<u32>,
    per_tool: Option<u32>,
    max_calls: Option<u32>,
    max_calls_per_tool: Option<u32>,
    wall_time: Option<u64>,
    sequential: bool,
    fail_fast: bool,
    stop_on_unknown: bool,
    detailed_errors: bool,
    max_concurrency: usize,
    max_result_bytes: usize,
}

/// What a played case came to: what is wrong, and what is compared between the forms.
#[derive(Debug)]
#[non_exhaustive]
pub struct Played {
    /// What breaks the contract.
    pub faults: Vec<String>,
    /// What must be the same in both forms.
    pub summary: Vec<String>,
    /// The events of all legs.
    pub events: Vec<String>,
}

impl RandomCase {
    /// Plays the case in a runtime of its own with a paused clock.
    ///
    /// # Panics
    /// If the runtime cannot be built.
    pub fn play(&self, form: Form, plant: Option<&Plant>) -> Played {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime")
            .block_on(self.play_here(form, plant))
    }

    async fn play_here(&self, form: Form, plant: Option<&Plant>) -> Played {
        let mut case = Case::new(form);
        if let Some(plant) = plant {
            case.plant(plant.clone());
        }
        self.tools(&mut case);
        case.replies(self.replies.iter().map(Say::reply));
        let mut played = Played {
            faults: Vec::new(),
            summary: Vec::new(),
            events: Vec::new(),
        };
        for (index, turn) in self.turns.iter().enumerate() {
            // The model has something to say, whatever the legs before took.
            case.replies([Reply::text("done").usage(1, 1)]);
            let text = format!("turn {index}");
            case.conversation().push(raf_core::ChatMessage::user(text));
            let leg = turn.play(&mut case, &mut played.faults).await;
            let place = format!("turn {index}: ");
            let faults = leg.faults.iter().map(|fault| format!("{place}{fault}"));
            played.faults.extend(faults);
            own_words(&leg, &mut played.faults);
            played.events.extend(leg.events());
        }
        played.summary = case.summary().to_vec();
        played
    }

    fn tools(&self, case: &mut Case) {
        let acts: Arc<[Act]> = self.acts.clone().into();
        let tool = |name: &str| {
            let acts = Arc::clone(&acts);
            ScriptedTool::new(name).always(Behaviour::from_fn(move |context, _| {
                let place = context.occurrence();
                let index = (place.round * 3 + place.position) as usize % acts.len();
                acts[index].behaviour(place)
            }))
        };
        case.tool(tool("plain"));
        case.tool(tool("strict").with_parameters(&serde_json::json!({
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
        })));
        case.tool(tool("alone").with_limits(ToolLimits::new().with_exclusive(true)));
        case.tool(tool("narrow").with_limits(ToolLimits::new().with_concurrency(1)));
        case.tool(tool("polling").with_limits(ToolLimits::new().with_polling(true)));
        let hidden = tool("hidden").with_limits(ToolLimits::new().with_agent_backed(true));
        case.watch_tool(&hidden);
        let additional = raf_tools::ToolRegistry::builder()
            .with_tool(hidden)
            .build()
            .expect("one tool");
        case.options(self.limits.options().with_additional_tools(additional));
    }
}

impl Turn {
    async fn play(&self, case: &mut Case, faults: &mut Vec<String>) -> Leg {
        let flag = Arc::new(AtomicBool::new(false));
        let cancellation = match self.stop {
            Some(StopAt::Flag(_)) => Cancellation::from(Arc::clone(&flag)),
            _ => Cancellation::new(),
        };
        let mut options = ChatClientRunOptions::new()
            .with_tools([ToolDeclaration::new("declared", "Has no body here.")])
            .with_cancellation(cancellation.clone())
            .with_deadline(self.deadline);
        options.tool_choice.clone_from(&self.choice);
        options.max_output_tokens = self.max_output_tokens;
        let stop = {
            let cancellation = cancellation.clone();
            move || {
                cancellation.cancel();
                flag.store(true, Ordering::Release);
            }
        };
        let entries = case.entry_count();
        let entered_before = entries.get();
        let at_stop: Arc<OnceLock<usize>> = Arc::default();
        let stop = {
            let (entries, at_stop) = (entries.clone(), Arc::clone(&at_stop));
            move || {
                stop();
                at_stop.get_or_init(|| entries.get());
            }
        };
        let leg = match self.stop {
            None => case.play(options).await,
            Some(StopAt::Before) => {
                stop();
                case.play(options).await
            }
            Some(StopAt::Item(at) | StopAt::Flag(at)) => {
                case.on_item(move |index, _| {
                    if index == at {
                        stop();
                    }
                });
                case.play(options).await
            }
            Some(StopAt::Time(at)) => {
                let later = async {
                    tokio::time::sleep(Duration::from_millis(at)).await;
                    stop();
                };
                tokio::join!(case.play(options), later).0
            }
        };
        if self.choice == Some(ToolChoice::None) && entries.get() != entered_before {
            faults.push("F2: a body was entered though nothing was to be called".to_owned());
        }
        if let Some(before) = at_stop.get()
            && *before != entries.get()
        {
            faults.push(format!(
                "H1: {before} bodies had been entered at the cancel, {} at the end",
                entries.get()
            ));
        }
        leg
    }
}

/// Each result holds the words of its own body: what bodies return begins with their place.
fn own_words(leg: &Leg, faults: &mut Vec<String>) {
    for update in leg.items().iter().flatten() {
        let AgentResponseUpdate::ToolCalled { occurrence, result } = update else {
            continue;
        };
        let text = result.text();
        let place = text.split(':').next().unwrap_or_default();
        let tagged = place.len() == 3 && place.as_bytes()[1] == b'/';
        let entered = leg
            .entries
            .iter()
            .any(|entry| entry.occurrence == *occurrence);
        if tagged && (place != occurrence.to_string() || !entered) {
            faults.push(format!("the result of {occurrence} is '{text}'"));
        }
        if !tagged
            && entered
            && result.outcome().is_ok()
            && !UNTAGGED.iter().any(|note| text.starts_with(note))
        {
            faults.push(format!(
                "the result of {occurrence} is '{text}', not its body's"
            ));
        }
    }
}

/// How results of bodies begin that say nothing of their own; they may be cut, too.
const UNTAGGED: [&str; 2] = ["Done. The tool", "(the result is"];
