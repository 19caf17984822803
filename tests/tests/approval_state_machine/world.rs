//! Plays a case against the engine and compares each leg with the reference.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use raf_core::{
    CancellationToken, ChatClientRunOptions, ChatMessage, MessageRole, ToolApprovalResponse,
    ToolCall, ToolDeclaration, ToolResult,
};
use raf_testing::{Reply, ScriptedChatClient, ScriptedTool};
use raf_tests::pausing::{PausingCase, Reload};
use serde_json::json;

use crate::compare;
use crate::ops::{Answer, AnswerOp, CallOp, LegOp, Stop, Tool};
use crate::reference::{Reference, State};
use crate::scripted::{body, foreign_results, reply};
use crate::terms::{Decision, Given, Input, Settled};

/// How many legs there were of each kind.
pub(crate) type Shares = BTreeMap<&'static str, usize>;

type Script = Arc<Mutex<VecDeque<Vec<CallOp>>>>;

/// A case, the engine's side and the reference's.
pub(crate) struct World {
    pub(crate) case: PausingCase,
    pub(crate) reference: Reference,
    /// The run of each request.
    pub(crate) run_of: BTreeMap<String, String>,
    /// Whether the paused run that the caller holds is what the store holds.
    pub(crate) value_is_fresh: bool,
    /// Whether the value must be given: the process may not have its record yet.
    value_is_needed: bool,
    script: Script,
    messages: usize,
    pub(crate) shares: Shares,
}

impl World {
    pub(crate) fn new() -> Self {
        let script = Script::default();
        let replies = Arc::clone(&script);
        let model = ScriptedChatClient::always(Reply::from_fn(move |_| {
            let next = replies.lock().expect("nobody panics").pop_front();
            next.map_or_else(|| Reply::text("done"), |calls| reply(&calls))
        }));
        let mut case = PausingCase::by_hand(model);
        let limits = raf_framework::FunctionInvokingOptions::new()
            .with_max_rounds(1_000)
            .with_max_failed_rounds(None)
            .with_no_progress_rounds(0);
        case.options(limits);
        for tool in Tool::ALL.into_iter().filter(|tool| *tool != Tool::Declared) {
            let schema = json!({
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"],
            });
            let scripted = ScriptedTool::new(tool.name())
                .with_parameters(&schema)
                .always(body(tool));
            case.tool(if tool.is_gated() {
                scripted.gated()
            } else {
                scripted
            });
        }
        Self {
            case,
            reference: Reference::default(),
            run_of: BTreeMap::new(),
            value_is_fresh: true,
            value_is_needed: false,
            script,
            messages: 0,
            shares: Shares::new(),
        }
    }

    /// Plays one leg; what is wrong with it.
    pub(crate) async fn play(&mut self, op: &LegOp) -> Vec<String> {
        self.reload(op);
        self.say(op);
        let own = self.case.conversation().clone();
        let tampered = self.tamper(op);
        let (answers, given) = self.answers(op);
        let posted = self.case.conversation().clone();
        let input = Input {
            answers: given,
            results: foreign_results(&posted),
            message: self.message_is_new(&posted),
            tampered,
            replies: op.replies.clone(),
        };
        *self.script.lock().expect("nobody panics") = op.replies.clone().into();

        let mut options = ChatClientRunOptions::new()
            .with_tools([ToolDeclaration::new("declared", "Has no body here.")])
            .with_tool_approval_responses(answers);
        if self.value_is_needed && self.reference.open.is_some() {
            options.paused_run.clone_from(self.case.paused_run());
        }
        let expected = self.reference.expect(&input);
        let (leg, dropped) = match op.stop {
            None => (self.case.play(options).await, false),
            Some(Stop::Drop(polls)) => self.case.play_dropped(options, polls).await,
            Some(Stop::Cancel(at)) => {
                let token = CancellationToken::new();
                if at == 0 {
                    token.cancel();
                }
                let cancel = token.clone();
                self.case.on_item(move |index, _| {
                    if index + 1 >= at {
                        cancel.cancel();
                    }
                });
                let options = options.with_cancellation(token);
                (self.case.play(options).await, false)
            }
        };
        // The caller's own conversation is not the one that was tampered with.
        let mut conversation = own;
        if !dropped {
            conversation.extend(leg.messages());
        }
        *self.case.conversation() = conversation;
        let mut faults = leg.faults.clone();
        faults.extend(compare::leg(self, &leg, &expected, dropped).await);
        if !faults.is_empty() {
            faults.push(format!(
                "input {input:#?}\nexpected {expected:#?}\nevents {:#?}\nend {:?}",
                self.case.ledger().words(&leg),
                leg.response.as_ref().map(|end| &end.finish_reason),
            ));
        }
        faults
    }

    pub(crate) fn count(&mut self, kind: &'static str) {
        *self.shares.entry(kind).or_default() += 1;
    }

    /// Takes the state to another client or process, where that loses nothing.
    fn reload(&mut self, op: &LegOp) {
        let mut reload = op.reload;
        let waits = self.reference.open.is_some();
        if !waits {
            // The same bytes twice without a shared store cannot be noticed (I2).
            self.case.paused_run().take();
        }
        if reload == Reload::NewProcess && waits && !self.value_is_fresh {
            reload = Reload::SameStore;
        }
        self.case.set_way(op.form, reload);
        self.case.reload();
        if reload == Reload::Nothing {
            return;
        }
        self.count("reloaded");
        if reload == Reload::NewProcess {
            self.count("in a new process");
            self.value_is_needed = true;
            let run = self.reference.open.as_ref().map(|batch| batch.run.clone());
            let run_of = &self.run_of;
            self.reference
                .settled
                .retain(|request, _| run.is_some() && run_of.get(request) == run.as_ref());
        }
    }

    /// What the caller adds to its own conversation: results, a message.
    fn say(&mut self, op: &LegOp) {
        let given = foreign_results(self.case.conversation());
        let open = self.reference.open.clone();
        let waiting = open
            .iter()
            .flat_map(|batch| &batch.calls)
            .filter(|call| call.state == State::Result && !given.contains(&call.id));
        let results: Vec<_> = waiting
            .take(op.results)
            .map(|call| ChatMessage::tool(ToolResult::ok(&call.id, "given")))
            .collect();
        if !results.is_empty() {
            self.count("with results");
        }
        self.case.conversation().extend(results);
        if op.message || self.case.conversation().is_empty() {
            if self.reference.open.is_some() {
                self.count("with a new message while calls wait");
            }
            let text = format!("message {}", self.messages);
            self.messages += 1;
            self.case.conversation().push(ChatMessage::user(text));
        }
    }

    /// Changes the conversation that is posted; says which call it shows with other arguments.
    fn tamper(&mut self, op: &LegOp) -> Option<usize> {
        let batch = self.reference.open.clone()?;
        let conversation = self.case.conversation();
        let place = conversation
            .iter()
            .rposition(|message| message.tool_calls().next().is_some())?;
        let mut tampered = None;
        if let Some(which) = op.tamper {
            let position = which % batch.calls.len();
            let mut calls: Vec<ToolCall> = conversation[place].tool_calls().cloned().collect();
            let call = &calls[position];
            calls[position] = ToolCall::new(call.id(), call.name(), r#"{"n":77}"#);
            let contents = calls.into_iter().map(Into::into).collect();
            let message = conversation[place].to_builder();
            conversation[place] = message.replace_contents(contents).build();
            tampered = Some(position);
        }
        if let Some(which) = op.forge_result {
            let call = &batch.calls[which % batch.calls.len()];
            if call.state.request().is_some() {
                let forged = ChatMessage::tool(ToolResult::ok(&call.id, "forged"));
                conversation.insert(place + 1, forged);
                self.count("with a forged result");
            }
        }
        if tampered.is_some() {
            self.count("with a tampered history");
        }
        tampered
    }

    fn message_is_new(&self, posted: &[ChatMessage]) -> bool {
        let behind = match &self.reference.open {
            Some(_) => posted
                .iter()
                .rposition(|message| message.tool_calls().next().is_some())
                .map_or(0, |place| place + 1),
            None => posted.len() - 1,
        };
        posted[behind..]
            .iter()
            .any(|message| message.role() == MessageRole::User)
    }

    /// The answers of a leg, as the engine gets them and as the reference does.
    fn answers(&mut self, op: &LegOp) -> (Vec<ToolApprovalResponse>, Vec<Given>) {
        let mut answers = Vec::new();
        let mut given = Vec::new();
        let mut right = 0;
        for answer in &op.answers {
            let Some((response, decision)) = self.answer(answer) else {
                continue;
            };
            let times = if answer.kind == Answer::Twice { 2 } else { 1 };
            if matches!(
                answer.kind,
                Answer::Accept | Answer::Decline | Answer::Alter
            ) {
                right += 1;
            }
            for _ in 0..times {
                given.push(Given {
                    request: response.request_id.clone(),
                    decision,
                });
                answers.push(response.clone());
            }
        }
        let open = self.reference.open.iter().flat_map(|batch| &batch.calls);
        let open = open.filter(|call| call.state.is_open()).count();
        if right > 0 && right < open {
            self.count("with a partial answer");
        }
        (answers, given)
    }

    fn answer(&mut self, op: &AnswerOp) -> Option<(ToolApprovalResponse, Decision)> {
        use ToolApprovalResponse as Response;
        if op.kind == Answer::Forged {
            self.count("with an answer to nothing");
            return Some((Response::approve("no such request"), Decision::Yes));
        }
        if op.kind == Answer::Late {
            let known: Vec<_> = self.reference.settled.iter().collect();
            let (request, settled) = known.get(op.target % known.len().max(1))?;
            let (response, kind) = (Response::approve(*request), **settled);
            self.count(match kind {
                Settled::Answered => "with a late answer, settled",
                Settled::Closed => "with a late answer, superseded",
            });
            return Some((response, Decision::Yes));
        }
        let batch = self.reference.open.clone()?;
        if op.kind == Answer::Label {
            let call = &batch.calls[op.target % batch.calls.len()];
            self.count("with an answer to a call's label");
            return Some((Response::approve(&call.id), Decision::Yes));
        }
        let waiting: Vec<_> = batch
            .calls
            .iter()
            .filter(|call| call.state.request().is_some())
            .collect();
        let call = waiting.get(op.target % waiting.len().max(1))?;
        let id = call.state.request()?.to_owned();
        let data = matches!(call.state, State::Data(_));
        let accepted = || {
            if data {
                let again = json!({"again": false});
                (
                    Response::resume(&id, again),
                    Decision::Data { again: false },
                )
            } else {
                (Response::approve(&id), Decision::Yes)
            }
        };
        let (kind, answer) = match op.kind {
            Answer::Accept => ("with a right answer", accepted()),
            Answer::Twice => ("with an answer given twice", accepted()),
            Answer::Decline => ("with a no", (Response::deny(&id, "no"), Decision::No)),
            Answer::Alter if data => {
                let again = json!({"again": true});
                let answer = (Response::resume(&id, again), Decision::Data { again: true });
                ("with data that is not enough", answer)
            }
            Answer::Alter => {
                let edited = call.n + 100;
                let answer = Response::approve_edited(&id, json!({"n": edited}));
                ("with edited arguments", (answer, Decision::Edited(edited)))
            }
            Answer::Null => {
                let mut answer = Response::approve(&id);
                answer.decision = None;
                ("with no decision", (answer, Decision::Nothing))
            }
            Answer::WrongCategory if data => (
                "with a wrong category",
                (Response::approve(&id), Decision::Yes),
            ),
            Answer::WrongCategory => {
                let answer = Response::resume(&id, json!({"again": false}));
                (
                    "with a wrong category",
                    (answer, Decision::Data { again: false }),
                )
            }
            Answer::Malformed => {
                let json = json!({"request_id": id, "decision": "yes"});
                let answer = serde_json::from_value(json).expect("any decision can be read");
                ("with a malformed answer", (answer, Decision::Malformed))
            }
            Answer::BadEdit => {
                let answer = Response::approve_edited(&id, json!({"n": "x"}));
                (
                    "with an edit against the schema",
                    (answer, Decision::BadEdit),
                )
            }
            Answer::Mismatch => {
                let answer = accepted().0.with_arguments(json!({"n": -1}));
                ("with other arguments", (answer, Decision::Mismatch))
            }
            Answer::Late | Answer::Forged | Answer::Label => return None,
        };
        self.count(kind);
        Some(answer)
    }
}
