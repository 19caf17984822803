//! Plays cases in every way: form, what becomes of the state at a pause, wire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use raf_core::IChatClient;
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_testing::EndpointWire;
use raf_tools::{ITool, ToolRegistry};

use crate::format::Mode;
use crate::load::Scenario;
use crate::play::{Player, Server};
use crate::report::{CaseReport, Fault, WayReport};
use crate::way::{DurableStore, Form, Reload, Way, Wire, not_over, not_over_http};

/// What a stack is built of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StackParts {
    /// The model of the scenario, watched.
    pub model: Arc<dyn IChatClient>,
    /// The tools of the scenario that the model is told of, and those given to the runner.
    pub tools: ToolRegistry,
    /// The options of the loop as the scenario says, with its store.
    pub options: FunctionInvokingOptions,
}

type StackFactory = Arc<dyn Fn(StackParts) -> Arc<dyn IChatClient> + Send + Sync>;
type ModelFactory = Arc<dyn Fn() -> Arc<dyn IChatClient> + Send + Sync>;

/// Plays cases.
///
/// ```
/// use raf_scenarios::{Runner, Scenario};
///
/// let file = r"
/// id: greeting
/// title: The model answers
/// script:
/// - user: Hi
/// - model: {text: Hello}
/// expect:
///   stop: [completed]
///   conversation: ['U:Hi', 'A:Hello']
/// ";
/// for scenario in Scenario::parse("greeting.yaml", file)? {
///     Runner::new().play(&scenario).assert_passed();
/// }
/// # Ok::<(), raf_scenarios::LoadError>(())
/// ```
#[derive(Clone)]
pub struct Runner {
    tools: Vec<Arc<dyn ITool>>,
    model: Option<ModelFactory>,
    stack: StackFactory,
    has_own_parts: bool,
    over_http: bool,
    over_stores: bool,
    postgres: Option<Arc<Server>>,
}

impl Default for Runner {
    fn default() -> Self {
        Self::new()
    }
}

impl Runner {
    /// Plays with the framework's loop against the scripted client and, with each provider, the
    /// endpoint on loopback.
    pub fn new() -> Self {
        Self {
            tools: Vec::new(),
            model: None,
            stack: Arc::new(|parts| {
                let StackParts {
                    model,
                    tools,
                    options,
                } = parts;
                Arc::new(FunctionInvokingChatClient::with_options(
                    model, tools, options,
                ))
            }),
            has_own_parts: false,
            over_http: true,
            over_stores: true,
            postgres: None,
        }
    }

    /// Takes this tool in the place of the scenario's own of the same name: its body is the real one,
    /// and its entries are counted.
    pub fn with_tool(mut self, tool: impl ITool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self.has_own_parts = true;
        self
    }

    /// Builds what is played in this way instead of the loop alone: an agent's own stack. The loop
    /// must be in it where the scenario calls tools.
    pub fn with_stack<C: IChatClient + 'static>(
        mut self,
        build: impl Fn(StackParts) -> C + Send + Sync + 'static,
    ) -> Self {
        self.stack = Arc::new(move |parts| Arc::new(build(parts)));
        self.has_own_parts = true;
        self
    }

    /// Asks this model instead of the scripted one: the replies of the scenario are not used, and
    /// what is expected of requests, executions and ends is judged as ever.
    pub fn with_model<C: IChatClient + 'static>(
        mut self,
        build: impl Fn() -> C + Send + Sync + 'static,
    ) -> Self {
        self.model = Some(Arc::new(move || Arc::new(build())));
        self
    }

    /// Sets whether cases are played over HTTP on loopback too.
    pub fn with_http(mut self, over_http: bool) -> Self {
        self.over_http = over_http;
        self
    }

    /// Sets whether cases of the loop are played over durable stores too, with a reload behind each leg:
    /// memory that lasts, and SQLite in a temporary folder.
    pub fn with_stores(mut self, over_stores: bool) -> Self {
        self.over_stores = over_stores;
        self
    }

    /// Plays over PostgreSQL too, on the server of this address (as
    /// [`PostgresStore::open`](raf_store::PostgresStore::open) takes it), without TLS. Default: no server.
    ///
    /// Each way of a case has a schema to itself, which is emptied behind it, and used again. The drop of
    /// the last clone of the runner drops them: not within a runtime.
    pub fn with_postgres(mut self, url: impl Into<String>) -> Self {
        self.postgres = Some(Arc::new(Server::new(url.into())));
        self
    }

    pub(crate) fn postgres(&self) -> Option<&Arc<Server>> {
        self.postgres.as_ref()
    }

    pub(crate) fn own_model(&self) -> Option<Arc<dyn IChatClient>> {
        self.model.as_ref().map(|build| build())
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Arc<dyn ITool>> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.name() == name).cloned()
    }

    pub(crate) fn stack(&self, parts: StackParts) -> Arc<dyn IChatClient> {
        (self.stack)(parts)
    }

    /// Plays a case in every way that it can be played in, each on a thread of its own.
    pub fn play(&self, scenario: &Scenario) -> CaseReport {
        let mut report = CaseReport::new(scenario.path(), scenario.name());
        let ways;
        (ways, report.left_out) = self.ways(scenario);
        // The first way of each wire; the scripted one is the first of all.
        let mut firsts: Vec<(Way, Outcome)> = Vec::new();
        for (way, mut outcome) in self.play_all(scenario, &ways) {
            let of_wire = firsts.iter().find(|(other, _)| other.wire == way.wire);
            let is_first_of_wire = of_wire.is_none();
            if let Some((other, first)) = of_wire {
                compare(&first.whole, &outcome.whole, *other, &mut outcome.faults);
            }
            if let (Wire::Http(_), Some((other, first))) = (way.wire, firsts.first()) {
                compare(
                    &first.outline,
                    &outcome.outline,
                    *other,
                    &mut outcome.faults,
                );
            }
            report.ways.push(WayReport {
                way,
                faults: outcome.faults.clone(),
            });
            if is_first_of_wire {
                firsts.push((way, outcome));
            }
        }
        report
    }

    /// The ways that a case is played in, and the kinds of ways that it is not played in, with the
    /// reason of each.
    pub fn ways(&self, scenario: &Scenario) -> (Vec<Way>, Vec<String>) {
        let mut ways = Vec::new();
        let mut left_out = Vec::new();
        let reloads = self.reloads(scenario, &mut left_out);
        let forms = [Form::Stream, Form::Fold];
        for &reload in &reloads {
            ways.extend(forms.map(|form| Way {
                form,
                reload,
                wire: Wire::Scripted,
            }));
        }
        if !self.over_http || self.model.is_some() {
            return (ways, left_out);
        }
        if let Some(reason) = not_over_http(scenario) {
            left_out.push(format!("not over HTTP: {reason}"));
            return (ways, left_out);
        }
        let own = [Reload::Nothing, Reload::NewProcess];
        for wire in EndpointWire::ALL {
            if let Some(reason) = not_over(scenario, wire) {
                left_out.push(format!("not over {wire:?}: {reason}"));
                continue;
            }
            for reload in own.into_iter().filter(|reload| reloads.contains(reload)) {
                ways.extend(forms.map(|form| Way {
                    form,
                    reload,
                    wire: Wire::Http(wire),
                }));
            }
        }
        (ways, left_out)
    }

    fn reloads(&self, scenario: &Scenario, left_out: &mut Vec<String>) -> Vec<Reload> {
        if let Some(reason) = &scenario.no_reload {
            left_out.push(format!("no reload: {reason}"));
            return vec![Reload::Nothing];
        }
        if scenario.mode == Mode::Executor {
            if self.over_stores {
                let reason = "not over durable stores: the executor alone keeps nothing";
                left_out.push(reason.to_owned());
            }
            return vec![Reload::Nothing, Reload::NewProcess];
        }
        let mut reloads = vec![
            Reload::Nothing,
            Reload::SameStore,
            Reload::NewProcess,
            Reload::StoreAndValue,
        ];
        if self.model.is_none() {
            let stores = DurableStore::ALL.iter().filter(|store| match store {
                DurableStore::Memory | DurableStore::Sqlite => self.over_stores,
                DurableStore::Postgres => self.postgres.is_some(),
            });
            reloads.extend(stores.flat_map(|store| store.reloads()));
        }
        reloads
    }

    /// Plays in these ways, each on a thread of its own. Those over durable stores wait for disks most of
    /// the time, so they are played at once; not with parts of the caller's, which may share something.
    fn play_all(&self, scenario: &Scenario, ways: &[Way]) -> Vec<(Way, Outcome)> {
        let at_once = |one: &Way, other: &Way| {
            let durable = |way: &Way| way.reload.durable().is_some();
            !self.has_own_parts && durable(one) && durable(other)
        };
        let groups = ways.chunk_by(at_once);
        let played = groups.flat_map(|group| {
            std::thread::scope(|scope| {
                let play = |way: &Way| {
                    let way = *way;
                    (way, scope.spawn(move || self.block_on(scenario, way)))
                };
                let threads: Vec<_> = group.iter().map(play).collect();
                let outcomes = threads
                    .into_iter()
                    .map(|(way, thread)| (way, joined(thread.join())));
                outcomes.collect::<Vec<_>>()
            })
        });
        played.collect()
    }

    fn block_on(&self, scenario: &Scenario, way: Way) -> Outcome {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all();
        // On a paused clock an hour passes at once when nothing else can happen.
        let patience = match way.wire {
            Wire::Scripted => {
                builder.start_paused(self.model.is_none());
                Duration::from_hours(1)
            }
            Wire::Http(_) => Duration::from_secs(30),
        };
        let runtime = match builder.build() {
            Ok(runtime) => runtime,
            Err(error) => return Outcome::failed(format!("no runtime: {error}")),
        };
        let played = runtime.block_on(async {
            let mut player = Player::new(scenario, self, way)?;
            let _listening = scenario.expect.reads_logs().then(|| player.log.listen());
            let played = tokio::time::timeout(patience, player.play()).await;
            if played.is_err() {
                player.fault(0, "it never ends: everything waits for something else");
            }
            let outcome = Outcome {
                faults: player.faults,
                whole: player.whole,
                outline: player.outline,
            };
            Ok((outcome, player.store))
        });
        drop(runtime);
        let closed = played.and_then(|(outcome, store)| store.close().map(|()| outcome));
        closed.unwrap_or_else(Outcome::failed)
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

/// What playing a case in one way came to.
struct Outcome {
    faults: Vec<Fault>,
    whole: Vec<String>,
    outline: Vec<String>,
}

impl Outcome {
    fn failed(text: impl Into<String>) -> Self {
        Self {
            faults: vec![Fault::new(0, text)],
            whole: Vec::new(),
            outline: Vec::new(),
        }
    }
}

/// What a thread came to.
fn joined(played: std::thread::Result<Outcome>) -> Outcome {
    played.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("a panic without words");
        Outcome::failed(format!("playing it panicked: {text}"))
    })
}

/// V6: all ways come to the same.
fn compare(first: &[String], second: &[String], other: Way, faults: &mut Vec<Fault>) {
    if first == second {
        return;
    }
    let place = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    let nothing = "nothing".to_owned();
    let at = |lines: &[String]| lines.get(place).unwrap_or(&nothing).clone();
    faults.push(Fault::new(
        0,
        format!(
            "V6: the ways differ\n    {other}: {}\n    this way: {}",
            at(first),
            at(second)
        ),
    ));
}
