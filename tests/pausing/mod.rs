//! Cases that pause: played in both forms, and with state that lives on in memory, in a store, as
//! values that went to another process, or both; every leg checked.

mod check;
mod ledger;
pub mod left_out;
mod play;
mod reading;

use std::sync::Arc;

use raf_core::{
    ChatClientRunOptions, ChatMessage, IChatClient, IRunStore, InMemoryRunStore, PausedRun,
    ToolApprovalResponse,
};
use raf_framework::FunctionInvokingOptions;
use raf_testing::invariants::assert_holds;
use raf_testing::{Reply, ScriptedChatClient, ScriptedRequest, ScriptedTool, ToolLog};
use raf_tools::{ITool, ToolRegistry};

pub use self::ledger::Ledger;
use crate::case::Form;
use crate::leg::Leg;
use crate::watch::{Item, Watch};

/// What becomes of the state at each pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// It stays in memory, with its client.
    Nothing,
    /// The conversation goes to JSON and back, to a fresh client with the same store.
    SameStore,
    /// Conversation and paused run go to JSON and back, to a fresh client with an empty store.
    NewProcess,
    /// As in a new process, and the store is there too: its record wins.
    StoreAndValue,
}

impl Reload {
    /// Every one.
    pub const ALL: [Self; 4] = [
        Self::Nothing,
        Self::SameStore,
        Self::NewProcess,
        Self::StoreAndValue,
    ];
}

/// Plays a case in both forms and with every kind of reload, and checks that all come to the same.
///
/// # Panics
/// If they differ, the case fails, or its script was not followed.
pub async fn in_every_way(play: impl AsyncFn(&mut PausingCase)) {
    let mut first: Option<Vec<String>> = None;
    for reload in Reload::ALL {
        for form in [Form::Stream, Form::Fold] {
            let mut case = PausingCase::new(form, reload);
            play(&mut case).await;
            let summary = case.finish();
            match &first {
                None => first = Some(summary),
                Some(first) => assert_eq!(
                    *first, summary,
                    "the first way (left) and {form:?} with {reload:?} (right) differ"
                ),
            }
        }
    }
}

/// A case in one form, with one kind of reload.
#[derive(Debug)]
pub struct PausingCase {
    form: Form,
    reload: Reload,
    model: ScriptedChatClient,
    tools: Vec<Arc<dyn ITool>>,
    logs: Vec<(String, ToolLog)>,
    options: FunctionInvokingOptions,
    store: Arc<dyn IRunStore>,
    client: Option<Arc<dyn IChatClient>>,
    watch: Option<Watch>,
    conversation: Vec<ChatMessage>,
    paused_run: Option<PausedRun>,
    requests: Vec<ScriptedRequest>,
    ledger: Ledger,
    summary: Vec<String>,
    /// Whether a pause alone takes the state to where it lives on.
    reloads_by_itself: bool,
    registry: Option<ToolRegistry>,
}

impl PausingCase {
    /// A case without tools and without replies.
    pub fn new(form: Form, reload: Reload) -> Self {
        Self {
            form,
            reload,
            model: ScriptedChatClient::new([]),
            tools: Vec::new(),
            logs: Vec::new(),
            options: FunctionInvokingOptions::new(),
            store: Arc::new(InMemoryRunStore::new()),
            client: None,
            watch: None,
            conversation: Vec::new(),
            paused_run: None,
            requests: Vec::new(),
            ledger: Ledger::default(),
            summary: Vec::new(),
            reloads_by_itself: true,
            registry: None,
        }
    }

    /// A case around this model that reloads only when told to, and keeps no summary.
    pub fn by_hand(model: ScriptedChatClient) -> Self {
        Self {
            model,
            reloads_by_itself: false,
            ..Self::new(Form::Stream, Reload::Nothing)
        }
    }

    /// Sets form and reload for what follows.
    pub fn set_way(&mut self, form: Form, reload: Reload) {
        self.form = form;
        self.reload = reload;
    }

    /// The form that it is played in.
    pub fn form(&self) -> Form {
        self.form
    }

    /// What becomes of its state at each pause.
    pub fn reload_kind(&self) -> Reload {
        self.reload
    }

    /// Registers a tool; what it does is seen in its log.
    pub fn tool(&mut self, tool: ScriptedTool) -> ToolLog {
        let log = tool.log().clone();
        let gated = tool.requires_approval();
        self.shared_tool(Arc::new(tool), &log);
        if gated {
            self.ledger.gated_logs.push(log.clone());
        }
        log
    }

    /// Registers a tool made some other way around a scripted one, whose log is given.
    pub fn shared_tool(&mut self, tool: Arc<dyn ITool>, log: &ToolLog) {
        self.logs.push((tool.name().to_owned(), log.clone()));
        self.tools.push(tool);
        self.registry = None;
        self.client = None;
    }

    /// Puts another tool in the place of the one of this name: that is how the world is when the run
    /// goes on. `None` takes it away.
    pub fn replace_tool(&mut self, name: &str, tool: Option<ScriptedTool>) -> Option<ToolLog> {
        self.tools.retain(|tool| tool.name() != name);
        self.registry = None;
        self.client = None;
        tool.map(|tool| self.tool(tool))
    }

    /// Gated bodies may be entered although nobody was asked: rules or policies say so.
    pub fn allow_unasked(&mut self) {
        self.ledger.gated_logs.clear();
    }

    /// Sets the options of the loop; the store is the case's own.
    pub fn options(&mut self, options: FunctionInvokingOptions) {
        self.options = options;
        self.client = None;
    }

    /// The store as it stands.
    pub fn store_now(&self) -> Arc<dyn IRunStore> {
        Arc::clone(&self.store)
    }

    /// Calls this with each item of the next leg, and its place in it, when it is delivered.
    pub fn on_item(&mut self, hook: impl Fn(usize, &Item) + Send + Sync + 'static) {
        self.stack().1.on_item(hook);
    }

    /// Sets the store.
    pub fn store(&mut self, store: Arc<dyn IRunStore>) {
        self.store = store;
        self.client = None;
    }

    /// Adds replies to the model's script.
    pub fn replies(&mut self, replies: impl IntoIterator<Item = Reply>) {
        for reply in replies {
            self.model.push(reply);
        }
    }

    /// The scripted model.
    pub fn model(&self) -> &ScriptedChatClient {
        &self.model
    }

    /// The conversation as the caller keeps it.
    pub fn conversation(&mut self) -> &mut Vec<ChatMessage> {
        &mut self.conversation
    }

    /// The paused run as the caller keeps it.
    pub fn paused_run(&mut self) -> &mut Option<PausedRun> {
        &mut self.paused_run
    }

    /// What was seen over all legs.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Request n of the case, from 1, each message in one line.
    ///
    /// # Panics
    /// If there was none.
    #[track_caller]
    pub fn request_lines(&self, n: usize) -> Vec<String> {
        match self.requests.get(n - 1) {
            Some(request) => request.lines(),
            None => panic!("there were {} requests, not {n}", self.requests.len()),
        }
    }

    /// Request n of the case, from 1.
    ///
    /// # Panics
    /// If there was none.
    #[track_caller]
    pub fn request(&self, n: usize) -> &ScriptedRequest {
        &self.requests[n - 1]
    }

    /// How many requests the case made.
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// The id of the last request that was announced for the call with this label.
    ///
    /// # Panics
    /// If there was none.
    #[track_caller]
    pub fn id(&self, call: &str) -> String {
        self.ledger
            .request_of(call)
            .unwrap_or_else(|| panic!("nothing was asked about '{call}'"))
    }

    /// An answer of yes to the last request about a call.
    ///
    /// # Panics
    /// If there was none.
    #[track_caller]
    pub fn yes(&self, call: &str) -> ToolApprovalResponse {
        ToolApprovalResponse::approve(self.id(call))
    }

    /// An answer of no to the last request about a call.
    ///
    /// # Panics
    /// If there was none.
    #[track_caller]
    pub fn no(&self, call: &str, reason: &str) -> ToolApprovalResponse {
        ToolApprovalResponse::deny(self.id(call), reason)
    }

    /// The user says something; plays the leg that follows and checks it.
    ///
    /// # Panics
    /// If the leg breaks the contract.
    pub async fn say(&mut self, text: &str) -> Leg {
        self.say_with(text, ChatClientRunOptions::new()).await
    }

    /// As [`PausingCase::say`], with options.
    ///
    /// # Panics
    /// If the leg breaks the contract.
    pub async fn say_with(&mut self, text: &str, options: ChatClientRunOptions) -> Leg {
        self.conversation.push(ChatMessage::user(text));
        self.go_on(options).await
    }

    /// Plays a leg with these answers and nothing else, and checks it.
    ///
    /// # Panics
    /// If the leg breaks the contract.
    pub async fn answer(&mut self, answers: impl IntoIterator<Item = ToolApprovalResponse>) -> Leg {
        let options = ChatClientRunOptions::new().with_tool_approval_responses(answers);
        self.go_on(options).await
    }

    /// Plays a leg over the conversation as it stands and checks it.
    ///
    /// # Panics
    /// If the leg breaks the contract.
    pub async fn go_on(&mut self, options: ChatClientRunOptions) -> Leg {
        let leg = self.play(options).await;
        assert_holds(leg.faults.iter().map(|fault| {
            format!(
                "{fault}\n  in {:?} form with {:?}, the events were {:#?}",
                self.form,
                self.reload,
                self.ledger.words(&leg)
            )
        }));
        leg
    }

    /// Plays a leg over a conversation that somebody tampered with; the caller's own stays as it is.
    ///
    /// # Panics
    /// If the leg breaks the contract.
    pub async fn go_on_with(
        &mut self,
        conversation: Vec<ChatMessage>,
        options: ChatClientRunOptions,
    ) -> Leg {
        let own = std::mem::replace(&mut self.conversation, conversation);
        let leg = self.go_on(options).await;
        self.conversation = own;
        leg
    }

    /// Takes the state to where the case says that it lives on: to JSON, and to another client.
    ///
    /// # Panics
    /// If it does not survive JSON.
    pub fn reload(&mut self) {
        if self.reload == Reload::Nothing {
            return;
        }
        let json = serde_json::to_string(&self.conversation).expect("a conversation is JSON");
        let read: Vec<ChatMessage> = serde_json::from_str(&json).expect("it can be read again");
        assert_eq!(read, self.conversation, "the conversation survives JSON");
        self.conversation = read;
        if let Some(paused) = &self.paused_run {
            let json = serde_json::to_string(paused).expect("a paused run is JSON");
            let read: PausedRun = serde_json::from_str(&json).expect("it can be read again");
            assert_eq!(read, *paused, "the paused run survives JSON");
            self.paused_run = Some(read);
        }
        if self.reload == Reload::NewProcess {
            self.store = Arc::new(InMemoryRunStore::new());
        }
        self.client = None;
    }

    /// What the case came to, for comparing the ways.
    ///
    /// # Panics
    /// If the script was not followed.
    #[track_caller]
    pub fn finish(self) -> Vec<String> {
        self.model.assert_done();
        for (tool, log) in &self.logs {
            assert_holds(log.violations());
            assert_eq!(log.running(), 0, "bodies of '{tool}' run on");
        }
        self.summary
    }

    /// The client as it stands: watched loop over watched model.
    pub fn client(&mut self) -> Arc<dyn IChatClient> {
        self.stack().0
    }
}
