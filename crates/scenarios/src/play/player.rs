//! Plays a case in one way: its actions one after the other, each leg checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use raf_core::{ChatMessage, IChatClient, PausedRun, RunId, ToolCall, ToolDeclaration, ToolResult};
use raf_testing::{ScriptedRequest, ScriptedTool, ToolLog};
use raf_tools::{ITool, ToolRegistry, ToolRegistryBuilder};
use tokio::time::{Duration, Instant};

use super::agent::{Made, agent_tool};
use super::body::{Outside, declaration, scripted};
use super::config::loop_options;
use super::kept::check_kept;
use super::ledger::Ledger;
use super::leg::Leg;
use super::log::Log;
use super::model::Model;
use super::store::Store;
use super::store_alone::StoreAlone;
use super::watch::Watch;
use super::{canonical, legs};
use crate::format::{Config, Gate, Message, Mode, Role, Tool, Visibility};
use crate::judge;
use crate::load::{Action, Scenario};
use crate::report::Fault;
use crate::runner::{Runner, StackParts};
use crate::way::{Reload, Way, Wire};

/// Why a case cannot go on: a fault that was already written down.
#[derive(Debug)]
pub(crate) struct CannotGoOn;

/// A case in one way.
pub(crate) struct Player<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) runner: &'a Runner,
    pub(crate) way: Way,
    pub(crate) outside: Outside,
    pub(crate) model: Model,
    pub(crate) log: Log,
    /// How many replies of the script were given to the model.
    pub(crate) pushed: usize,
    pub(crate) config: Config,
    pub(crate) tools: Vec<(String, Tool, Arc<dyn ITool>)>,
    /// The logs of all tools that there ever were.
    pub(crate) logs: Vec<(String, ToolLog)>,
    pub(crate) store: Store,
    client: Option<Arc<dyn IChatClient>>,
    pub(crate) watch: Watch,
    pub(crate) conversation: Vec<ChatMessage>,
    pub(crate) paused_run: Option<PausedRun>,
    pub(crate) kept: BTreeMap<String, PausedRun>,
    pub(crate) ledger: Ledger,
    /// The models of agents that tools run: tool, model, number of its replies.
    pub(crate) agents: Vec<(String, Model, usize)>,
    pub(crate) legs: Vec<Leg>,
    pub(crate) requests: Vec<ScriptedRequest>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) whole: Vec<String>,
    pub(crate) outline: Vec<String>,
    started: Instant,
}

impl<'a> Player<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        runner: &'a Runner,
        way: Way,
    ) -> Result<Self, String> {
        let outside = Outside::default();
        let rules = scenario.actions.iter().filter_map(|action| match action {
            Action::Rule(reply) => Some(reply.clone()),
            _ => None,
        });
        let rules = rules.collect();
        let model = match (runner.own_model(), way.wire) {
            (Some(model), _) => Model::Own(model),
            (None, Wire::Scripted) => Model::scripted(rules, &outside),
            (None, Wire::Http(wire)) => Model::http(wire, rules, &outside)?,
        };
        let mut config = scenario.config.clone();
        if matches!(way.wire, Wire::Http(_)) && config.grace_ms.is_none() {
            // Real time passes there.
            config.grace_ms = Some(100);
        }
        let mut player = Self {
            scenario,
            runner,
            way,
            outside,
            model,
            log: Log::default(),
            pushed: 0,
            config,
            tools: Vec::new(),
            logs: Vec::new(),
            store: Store::new(way.reload, runner.postgres())?,
            client: None,
            watch: Watch::default(),
            conversation: Vec::new(),
            paused_run: None,
            kept: BTreeMap::new(),
            ledger: Ledger::default(),
            agents: Vec::new(),
            legs: Vec::new(),
            requests: Vec::new(),
            faults: Vec::new(),
            whole: Vec::new(),
            outline: Vec::new(),
            started: Instant::now(),
        };
        for (name, tool) in scenario.tools.iter() {
            player.add_tool(name, tool)?;
        }
        Ok(player)
    }

    /// Plays all there is.
    pub(crate) async fn play(&mut self) {
        let scenario = self.scenario;
        for action in &scenario.actions {
            if self.act(action).await.is_err() {
                break;
            }
        }
        self.check_wire();
        self.check_agents();
        let faults = judge::case(self, &scenario.expect, self.started.elapsed());
        self.faults.extend(faults);
    }

    /// V1 on the wire too, and nothing is asked twice there.
    fn check_wire(&mut self) {
        if self.way.wire == Wire::Scripted {
            return;
        }
        let wire = self.model.wire_requests();
        for text in raf_testing::invariants::check_requests(&wire) {
            self.fault(0, format!("on the wire: {text}"));
        }
        if self
            .model
            .requests()
            .is_some_and(|asked| asked != self.requests.len())
        {
            let (on_the_wire, asked) = (wire.len(), self.requests.len());
            let text = format!("{on_the_wire} requests are on the wire, the loop made {asked}");
            self.fault(0, text);
        }
    }

    /// Agents that tools run were asked for all their replies.
    fn check_agents(&mut self) {
        let mut faults = Vec::new();
        for (tool, model, replies) in &self.agents {
            let asked = model.requests().unwrap_or(*replies);
            if asked < *replies {
                faults.push(format!(
                    "the agent '{tool}' was asked for {asked} of its {replies} replies"
                ));
            }
        }
        for text in faults {
            self.fault(0, text);
        }
    }

    pub(crate) fn fault(&mut self, line: u64, text: impl Into<String>) {
        self.faults.push(Fault::new(line, text));
    }

    async fn act(&mut self, action: &Action) -> Result<(), CannotGoOn> {
        match action {
            Action::Leg(plan) if self.scenario.mode == Mode::Executor => {
                super::executor::play(self, plan).await?;
            }
            Action::Leg(plan) => legs::play(self, plan).await?,
            Action::Rule(_) => {}
            Action::Expect(line, expect) => {
                let faults = judge::leg(self, *line, expect);
                self.faults.extend(faults);
            }
            Action::Reload => self.reload(),
            Action::Append(message) => self.conversation.push(built(message)),
            Action::Advance(time) => tokio::time::advance(Duration::from_millis(*time)).await,
            Action::Store(fault) => self.store.fail(fault),
            Action::Config(config) => {
                self.config = (**config).clone();
                self.client = None;
            }
            Action::Tools(tools) => {
                for (name, tool) in tools.iter() {
                    self.tools.retain(|(own, ..)| own != name);
                    if let Some(tool) = tool
                        && let Err(text) = self.add_tool(name, tool)
                    {
                        self.fault(0, text);
                        return Err(CannotGoOn);
                    }
                }
                self.client = None;
            }
            Action::KeepPausedRun(name) => {
                if let Some(paused) = self.paused_run.clone() {
                    self.kept.insert(name.clone(), paused);
                }
            }
        }
        Ok(())
    }

    fn add_tool(&mut self, name: &str, tool: &Tool) -> Result<(), String> {
        let given = self.runner.tool(name);
        let mut made = Made::default();
        let scripted = match (given, tool.agent()) {
            (Some(given), _) => wrapped(&given, given.requires_approval()),
            (None, Some(agent)) => {
                let (outside, watch) = (&self.outside, &self.watch);
                let given = agent_tool(name, tool, agent, outside, watch, &mut made)?;
                wrapped(&given, tool.gate == Gate::Always)
            }
            (None, None) if tool.given => {
                return Err(format!(
                    "the body of '{name}' is the caller's own: give it to the runner"
                ));
            }
            (None, None) => scripted(name, tool, &self.outside),
        };
        self.agents.extend(made.models);
        for (name, log, is_asked) in made.logs {
            if is_asked {
                self.ledger.gated_logs.push(log.clone());
            }
            self.logs.push((name, log));
        }
        let log = scripted.log().clone();
        let opens_unasked = !self.config.policy.is_empty();
        if scripted.requires_approval() && !opens_unasked {
            self.ledger.gated_logs.push(log.clone());
        }
        if tool.visible != Visibility::Declared {
            self.logs.push((name.to_owned(), log));
        }
        self.tools
            .push((name.to_owned(), tool.clone(), Arc::new(scripted)));
        let probe = self.model.probe();
        self.watch.look_at(self.logs.clone(), probe);
        Ok(())
    }

    /// The tools that are seen in this way.
    pub(crate) fn registry(&self, visible: Visibility) -> Result<ToolRegistry, String> {
        let tools = self
            .tools
            .iter()
            .filter(|(_, tool, _)| tool.visible == visible);
        let registry = tools.map(|(.., tool)| Arc::clone(tool)).fold(
            ToolRegistry::builder(),
            ToolRegistryBuilder::with_shared_tool,
        );
        registry.build().map_err(|error| error.to_string())
    }

    /// The tools that are declared only.
    pub(crate) fn declared(&self) -> Vec<ToolDeclaration> {
        let declared = self
            .tools
            .iter()
            .filter(|(_, tool, _)| tool.visible == Visibility::Declared);
        declared
            .map(|(name, tool, _)| declaration(name, tool))
            .collect()
    }

    /// The client as it stands: watched loop over watched model.
    pub(crate) fn client(&mut self) -> Result<Arc<dyn IChatClient>, String> {
        if let Some(client) = &self.client {
            return Ok(Arc::clone(client));
        }
        let options = loop_options(&self.config, self.store.shared(), &self.outside)
            .with_additional_tools(self.registry(Visibility::Hidden)?);
        let stack = self.runner.stack(StackParts {
            model: self.watch.below(self.model.client()),
            tools: self.registry(Visibility::Offered)?,
            options,
        });
        let client = self.watch.above(match self.waiting_run() {
            Some(run_id) => Arc::new(StoreAlone {
                inner: stack,
                store: self.store.shared(),
                watch: self.watch.clone(),
                run_id,
            }),
            None => stack,
        });
        self.client = Some(Arc::clone(&client));
        Ok(client)
    }

    /// The run that waits, where a killed process has nothing but the store.
    fn waiting_run(&self) -> Option<RunId> {
        let last = self.legs.last()?;
        let is_killed = matches!(self.way.reload, Reload::Killed(_));
        let waits = is_killed && !last.pending().is_empty();
        last.run_id().filter(|_| waits)
    }

    /// Notes what the leg came to, for comparing the ways.
    pub(crate) fn note(&mut self, leg: Leg) {
        self.whole.extend(canonical::whole(&leg, &self.ledger));
        self.outline.extend(canonical::outline(&leg));
        let requests = leg.seen.requests.iter().map(|seen| seen.request.clone());
        self.requests.extend(requests);
        self.legs.push(leg);
    }

    /// Looks at what a durable store has behind the last leg.
    pub(crate) fn check_kept(&mut self, is_own: bool) {
        if let (Some(store), Some(leg)) = (self.store.durable(), self.legs.last()) {
            let line = leg.line;
            let conversation = is_own.then_some(&*self.conversation);
            for text in check_kept(store, leg, &self.ledger, conversation) {
                self.faults.push(Fault::new(line, text));
            }
        }
    }

    /// Takes the state to where the way says that it lives on: to JSON, and to another client.
    pub(crate) fn reload(&mut self) {
        if self.way.reload == Reload::Nothing {
            return;
        }
        let json = serde_json::to_string(&self.conversation).unwrap_or_default();
        match serde_json::from_str::<Vec<ChatMessage>>(&json) {
            Ok(read) if read == self.conversation => self.conversation = read,
            _ => self.fault(0, "the conversation does not survive JSON"),
        }
        if let Some(paused) = self.paused_run.take() {
            let json = serde_json::to_string(&paused).unwrap_or_default();
            match serde_json::from_str::<PausedRun>(&json) {
                Ok(read) if read == paused => self.paused_run = Some(read),
                _ => self.fault(0, "the paused run does not survive JSON"),
            }
        }
        self.client = None;
        if let Err(text) = self.store.reload() {
            self.fault(0, format!("the store cannot be opened again: {text}"));
        }
    }
}

/// A caller's own tool, seen by the runner.
pub(crate) fn wrapped(given: &Arc<dyn ITool>, gated: bool) -> ScriptedTool {
    let inner = Arc::clone(given);
    let scripted = ScriptedTool::new(given.name())
        .with_declaration(given.declaration().clone())
        .with_limits(given.limits())
        .with_trust(given.trust())
        .always(raf_testing::Behaviour::custom(move |context, arguments| {
            let inner = Arc::clone(&inner);
            async move { inner.call(context, arguments).await }
        }));
    if gated {
        return scripted.gated();
    }
    scripted
}

/// A message as a caller writes it.
pub(crate) fn built(message: &Message) -> ChatMessage {
    match message.role {
        Role::System => ChatMessage::system(&message.text),
        Role::Developer => {
            let builder = ChatMessage::builder(raf_core::MessageRole::Developer);
            builder
                .content(raf_core::Content::text(&message.text))
                .build()
        }
        Role::User => ChatMessage::user(&message.text),
        Role::Tool => {
            let id = message.result_of.clone().unwrap_or_default();
            ChatMessage::tool(ToolResult::ok(id, &message.text))
        }
        Role::Assistant => {
            let mut builder = ChatMessage::builder(raf_core::MessageRole::Assistant);
            if !message.text.is_empty() {
                builder = builder.content(raf_core::Content::text(&message.text));
            }
            for call in &message.calls {
                builder = builder.content(ToolCall::new(&call.0, &call.1, &call.2));
            }
            builder.build()
        }
    }
}
