//! A context provider: it brings the user's profile into each run, and a tool to change it; the
//! transcript holds none of it.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use raf_core::{Result, Session};
use raf_framework::{
    AgentRequest, AgentRuntime, ContextOutcome, ContextRequest, IContextProvider, ProvidedContext,
};
use raf_testing::{Reply, ScriptedRequest};
use raf_tools::{ToolRegistry, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

/// What is known of one user.
#[derive(Clone, Debug, Default)]
struct Profile {
    name: String,
    /// Shared with the tool that changes it.
    language: Arc<Mutex<String>>,
    turns: Arc<Mutex<u32>>,
}

#[derive(Deserialize, JsonSchema)]
struct SetLanguage {
    /// The language in which the user wants to be answered.
    language: String,
}

#[async_trait]
impl IContextProvider for Profile {
    fn name(&self) -> &'static str {
        "profile"
    }

    /// Asked at the beginning of each run: what it says is as fresh as the run.
    async fn provide(&self, _: &ContextRequest<'_>) -> Result<ProvidedContext> {
        let now = self
            .language
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let language = Arc::clone(&self.language);
        let remember = tool_fn(
            "set_language",
            "Remembers the language that the user wants.",
            move |change: SetLanguage| {
                *language.lock().unwrap_or_else(PoisonError::into_inner) = change.language;
                async { "remembered" }
            },
        );
        Ok(ProvidedContext::new()
            .with_instructions(format!("The user is {}. Answer in {now}.", self.name))
            .with_tools(ToolRegistry::builder().with_tool(remember).build()?))
    }

    /// Told when a run has ended, before its end is seen.
    async fn finished(&self, outcome: &ContextOutcome<'_>) -> Result<()> {
        if outcome.result.is_ok() {
            *self.turns.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let profile = Profile {
        name: "Ada".into(),
        language: Arc::new(Mutex::new("English".into())),
        ..Profile::default()
    };
    let agent = AgentRuntime::builder(raf_examples::provider(script())?)
        .instructions("You are a friendly assistant.")
        .context_provider(profile.clone())
        .build()?;
    let session = Session::in_memory();
    for line in ["Hello!", "Auf Deutsch, bitte.", "Wie heiße ich?"] {
        println!("\n> {line}");
        let mut run = agent.run(AgentRequest::new(line).in_session(session.clone()));
        while let Some(piece) = run.next_text().await? {
            print!("{piece}");
        }
        println!();
    }
    let turns = profile.turns.lock().unwrap_or_else(PoisonError::into_inner);
    println!("\nThe profile was told of {turns} turns.");
    Ok(())
}

/// What the scripted endpoint says where there is no model: it does as its instructions say.
fn script() -> [Reply; 4] {
    let greet = |request: &ScriptedRequest| {
        let instructed = request.messages[0].text();
        let name = if instructed.contains("Ada") {
            "Ada"
        } else {
            "stranger"
        };
        raf_examples::say(&format!("Hello, {name}."))
    };
    let answer = |request: &ScriptedRequest| {
        let german = request.messages[0].text().contains("in German");
        raf_examples::say(if german {
            "Du heißt Ada."
        } else {
            "You are Ada."
        })
    };
    [
        Reply::from_fn(greet),
        Reply::calls([("call_1", "set_language", r#"{"language": "German"}"#)]),
        raf_examples::say("Gern, ab jetzt auf Deutsch."),
        Reply::from_fn(answer),
    ]
}
