//! A case: a scripted model, scripted tools and a loop between them, played leg by leg in one of the
//! two forms, with every leg checked.

use std::sync::Arc;

use futures::StreamExt;
use raf_core::{
    AgentResponse, Cancellation, ChatClientExt, ChatClientRunOptions, ChatMessage, IChatClient,
    ResponseFold, Result,
};
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_testing::invariants::assert_holds;
use raf_testing::{
    RecordedCall, Reply, ScriptedChatClient, ScriptedRequest, ScriptedTool, ToolLog,
};
use raf_tools::{ITool, ToolRegistry, ToolRegistryBuilder};

use crate::canonical;
use crate::check::{check_conversation, check_leg};
use crate::faults::Plant;
use crate::leg::Leg;
use crate::watch::{Item, Watch};

/// In which form a leg is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The stream, item by item, then folded.
    Stream,
    /// `get_response`.
    Fold,
}

/// Plays a case in both forms and checks that they come to the same (V6, contract B1).
///
/// # Panics
/// If the forms differ, the case fails, or its script was not followed.
pub async fn in_both_forms(play: impl AsyncFn(&mut Case)) {
    let mut stream = Case::new(Form::Stream);
    play(&mut stream).await;
    let mut fold = Case::new(Form::Fold);
    play(&mut fold).await;
    assert_eq!(
        stream.finish(),
        fold.finish(),
        "the stream (left) and get_response (right) differ"
    );
}

/// A case in one form.
#[derive(Debug)]
pub struct Case {
    form: Form,
    model: ScriptedChatClient,
    tools: Vec<Arc<dyn ITool>>,
    logs: Vec<(String, ToolLog)>,
    options: FunctionInvokingOptions,
    plant: Option<Plant>,
    stack: Option<(Arc<dyn IChatClient>, Watch)>,
    conversation: Vec<ChatMessage>,
    requests: Vec<ScriptedRequest>,
    summary: Vec<String>,
}

impl Case {
    /// A case without tools and without replies.
    pub fn new(form: Form) -> Self {
        Self {
            form,
            model: ScriptedChatClient::new([]),
            tools: Vec::new(),
            logs: Vec::new(),
            options: FunctionInvokingOptions::new(),
            plant: None,
            stack: None,
            conversation: Vec::new(),
            requests: Vec::new(),
            summary: Vec::new(),
        }
    }

    /// The form that it is played in.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Registers a tool; what it does is seen in its log.
    pub fn tool(&mut self, tool: ScriptedTool) -> ToolLog {
        let log = self.watch_tool(&tool);
        self.tools.push(Arc::new(tool));
        log
    }

    /// Registers a tool made some other way around a scripted one, whose log is given.
    pub fn shared_tool(&mut self, tool: Arc<dyn ITool>, log: &ToolLog) {
        self.logs.push((tool.name().to_owned(), log.clone()));
        self.tools.push(tool);
    }

    /// Watches a tool that reaches the loop some other way than by registration.
    pub fn watch_tool(&mut self, tool: &ScriptedTool) -> ToolLog {
        let log = tool.log().clone();
        self.logs.push((tool.name().to_owned(), log.clone()));
        log
    }

    /// Sets the options of the loop.
    pub fn options(&mut self, options: FunctionInvokingOptions) {
        self.options = options;
    }

    /// Plants a fault.
    pub fn plant(&mut self, plant: Plant) {
        self.plant = Some(plant);
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

    /// Request n of the case, from 1.
    ///
    /// # Panics
    /// If there was none.
    #[track_caller]
    pub fn request(&self, n: usize) -> &ScriptedRequest {
        match self.requests.get(n - 1) {
            Some(request) => request,
            None => panic!("there were {} requests, not {n}", self.requests.len()),
        }
    }

    /// How many requests the case made.
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Calls this with each item of the next leg, and its place in it, when it is delivered.
    pub fn on_item(&mut self, hook: impl Fn(usize, &Item) + Send + Sync + 'static) {
        self.stack().1.on_item(hook);
    }

    /// The entries of all bodies so far.
    pub fn entries(&self) -> Vec<RecordedCall> {
        let entries = self.logs.iter().flat_map(|(_, log)| log.calls());
        entries.collect()
    }

    /// Counts the entries of all bodies, while a leg is played too.
    pub fn entry_count(&self) -> EntryCount {
        EntryCount(self.logs.iter().map(|(_, log)| log.clone()).collect())
    }

    /// The user says something; plays the leg that follows and checks it.
    ///
    /// # Panics
    /// If the leg breaks the contract.
    pub async fn say(&mut self, text: &str) -> Leg {
        self.say_with(text, ChatClientRunOptions::new()).await
    }

    /// As [`Case::say`], with options.
    ///
    /// # Panics
    /// If the leg breaks the contract.
    pub async fn say_with(&mut self, text: &str, options: ChatClientRunOptions) -> Leg {
        self.conversation.push(ChatMessage::user(text));
        self.go_on(options).await
    }

    /// Plays a leg over the conversation as it stands and checks it.
    ///
    /// # Panics
    /// If the leg breaks the contract.
    pub async fn go_on(&mut self, options: ChatClientRunOptions) -> Leg {
        let leg = self.play(options).await;
        assert_holds(leg.faults.iter().map(|fault| {
            let events = leg.events();
            format!(
                "{fault}\n  in {:?} form, the events were {events:#?}",
                self.form
            )
        }));
        leg
    }

    /// Plays a leg over the conversation as it stands; what is wrong with it stands in the leg.
    pub async fn play(&mut self, options: ChatClientRunOptions) -> Leg {
        let (client, watch) = self.stack();
        let input = self.conversation.clone();
        // Deep copies: handles alone would change along.
        let known: Vec<ChatMessage> = input
            .iter()
            .map(|message| message.to_builder().build())
            .collect();
        let said = described(&options);
        let entered: Vec<usize> = self.logs.iter().map(|(_, log)| log.entries()).collect();
        let mut faults = Vec::new();
        let response = match self.form {
            Form::Stream => by_items(&*client, &input, options.clone(), &mut faults).await,
            Form::Fold => client.get_response(&input, options.clone()).await,
        };
        if input != known {
            faults.push("the caller's messages were changed".to_owned());
        }
        if described(&options) != said {
            faults.push("the caller's options were changed".to_owned());
        }
        let logs = self.logs.iter().zip(entered);
        let mut leg = Leg {
            input,
            seen: watch.take(),
            response,
            entries: logs
                .flat_map(|((_, log), before)| log.calls().split_off(before))
                .collect(),
            faults,
        };
        let faults = check_leg(&leg);
        leg.faults.extend(faults);
        self.conversation.extend(leg.messages());
        let pending = leg.pending().len();
        leg.faults
            .extend(check_conversation(&self.conversation, pending));
        let requests = leg.requests().iter().map(|seen| seen.request.clone());
        self.requests.extend(requests);
        self.summary.push(format!("leg of {:?}", leg.input.len()));
        self.summary.extend(canonical::leg(&leg));
        leg
    }

    /// What the case came to, for comparing the forms.
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

    /// What the case came to so far.
    pub fn summary(&self) -> &[String] {
        &self.summary
    }

    /// The stack: watched loop over watched model, with the planted fault between.
    fn stack(&mut self) -> (Arc<dyn IChatClient>, Watch) {
        if let Some(stack) = &self.stack {
            return stack.clone();
        }
        let watch = Watch::new(self.logs.clone(), self.model.probe().clone());
        let mut below = watch.below(Arc::new(self.model.clone()));
        if let Some(plant) = &self.plant {
            below = plant.below(below);
        }
        let registry = self
            .tools
            .iter()
            .map(|tool| match &self.plant {
                Some(plant) => plant.tool(Arc::clone(tool)),
                None => Arc::clone(tool),
            })
            .fold(
                ToolRegistry::builder(),
                ToolRegistryBuilder::with_shared_tool,
            )
            .build()
            .expect("tools of a case have names of their own");
        let options = self.options.clone();
        let mut client: Arc<dyn IChatClient> = Arc::new(FunctionInvokingChatClient::with_options(
            below, registry, options,
        ));
        if let Some(plant) = &self.plant {
            client = plant.above(client);
        }
        let stack = (watch.above(client), watch);
        self.stack = Some(stack.clone());
        stack
    }
}

/// Counts the entries of all bodies of a case.
#[derive(Clone, Debug)]
pub struct EntryCount(Vec<ToolLog>);

impl EntryCount {
    /// How many bodies have been entered.
    pub fn get(&self) -> usize {
        self.0.iter().map(ToolLog::entries).sum()
    }
}

/// Collects a stream item by item; after its end nothing may come any more.
async fn by_items(
    client: &dyn IChatClient,
    messages: &[ChatMessage],
    options: ChatClientRunOptions,
    faults: &mut Vec<String>,
) -> Result<AgentResponse> {
    let mut stream = client.run(messages, options).await?;
    let mut fold = ResponseFold::new();
    let mut failure = None;
    while let Some(item) = stream.next().await {
        match item {
            Ok(update) => fold.push(&update),
            Err(error) => failure = Some(error),
        }
    }
    for _ in 0..3 {
        if stream.next().await.is_some() {
            faults.push("an item came after the stream's end".to_owned());
        }
    }
    match failure {
        Some(error) => Err(fold.fail(error)),
        None => fold.finish(),
    }
}

/// Options in words, without the cancellation, which is meant to change.
fn described(options: &ChatClientRunOptions) -> String {
    let options = options.clone().with_cancellation(Cancellation::new());
    format!("{options:?}")
}
