//! Answers in a type: its JSON Schema goes to the model, what comes back is checked, and an answer that
//! does not fit is handed back.

use std::fmt;
use std::marker::PhantomData;

use async_trait::async_trait;
use raf_core::{
    AgentResponse, ChatClientExt, ChatClientRunOptions, ChatMessage, Content, Error, ErrorKind,
    FinishReason, IChatClient, JsonSchemaFormat, LegSnapshot, MessageRole, MessageSource,
    ResponseFormat, Result, ToolDeclaration, Usage,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arguments::cut;
use crate::schema::{ArgumentFault, CompiledSchema};

/// How often an answer that does not fit is handed back to the model.
const MAX_RETRIES: u32 = 2;
/// The most bytes of what is wrong with an answer that the model reads.
const MAX_FEEDBACK: usize = 2_000;
/// The property that holds a value which is no JSON object by itself.
const WRAPPED: &str = "value";

/// A response, and the value in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TypedResponse<T> {
    /// The answer.
    pub value: T,
    /// The response that holds it: messages, those of attempts that did not fit included, and usage of
    /// all attempts.
    pub response: AgentResponse,
}

/// Answers in a type, of any client.
#[async_trait]
pub trait TypedChatClientExt: IChatClient {
    /// The answer as a value of a type. The model is given its JSON Schema as the response format; an
    /// answer that does not fit is handed back to it, with what is wrong, at most twice. Tools are
    /// called as ever: the format holds for the answer.
    ///
    /// A type whose JSON is no object (a list, a number, an enum) is asked for as `{"value": …}`.
    ///
    /// ```
    /// use raf_testing::{Reply, ScriptedChatClient};
    /// use raf_tools::{TypedChatClientExt, schemars};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Weather { city: String, celsius: i32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> raf_core::Result<()> {
    /// # let client = ScriptedChatClient::new([Reply::text(r#"{"city": "Bern", "celsius": 20}"#)]);
    /// let question = ["The weather in Bern?".into()];
    /// let answer = client.get_typed::<Weather>(&question, Default::default()).await?;
    /// assert_eq!((answer.value.city.as_str(), answer.value.celsius), ("Bern", 20));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What ended a leg; [`ErrorKind::Protocol`] if no answer fits; [`ErrorKind::Misuse`] with the code
    /// `no_answer` if a leg ended without one: in a pause, at a limit. [`Error::leg`] holds the messages
    /// until then.
    async fn get_typed<T: DeserializeOwned + JsonSchema + Send>(
        &self,
        messages: &[ChatMessage],
        mut options: ChatClientRunOptions,
    ) -> Result<TypedResponse<T>> {
        let output = TypedOutput::<T>::new()?;
        options.response_format = Some(output.response_format());
        let mut conversation = messages.to_vec();
        let mut attempt = output.attempt();
        loop {
            let response = match self.get_response(&conversation, options.clone()).await {
                Ok(response) => response,
                Err(error) => return Err(attempt.failed(error)),
            };
            conversation.extend_from_slice(&response.messages);
            match attempt.look_at(response)? {
                Ok(typed) => return Ok(typed),
                Err(feedback) => conversation.push(feedback),
            }
            options.tool_approval_responses.clear();
            options.paused_run = None;
        }
    }
}

impl<C: IChatClient + ?Sized> TypedChatClientExt for C {}

/// A type as the form of an answer: its schema, compiled, and how to read an answer by it.
pub struct TypedOutput<T> {
    declaration: ToolDeclaration,
    schema: CompiledSchema,
    wrapped: bool,
    of: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for TypedOutput<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedOutput")
            .field("name", &self.declaration.name())
            .finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned + JsonSchema> TypedOutput<T> {
    /// The form of a type.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if its schema cannot be used.
    pub fn new() -> Result<Self> {
        let mut schema = schemars::schema_for!(T).to_value();
        let is_object = schema.get("type").is_some_and(|kind| kind == "object");
        if !is_object {
            schema = wrap(schema);
        }
        let legal = |character: char| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
            _ => '_',
        };
        let name: String = T::schema_name().chars().map(legal).take(64).collect();
        let declaration = ToolDeclaration::new(name, "").with_parameters(&schema);
        Ok(Self {
            schema: CompiledSchema::compile(&declaration)?,
            declaration,
            wrapped: !is_object,
            of: PhantomData,
        })
    }

    /// What a request says of it.
    pub fn response_format(&self) -> ResponseFormat {
        let schema = self.declaration.parameters_json().get();
        let schema: Value = serde_json::from_str(schema).unwrap_or_default();
        ResponseFormat::JsonSchema(JsonSchemaFormat::new(self.declaration.name(), &schema))
    }

    /// The value that an answer holds. A code fence around it is taken off.
    ///
    /// # Errors
    /// What is wrong with it, each fault with its place, in words for the model.
    pub fn read(&self, answer: &str) -> std::result::Result<T, String> {
        let text = unfenced(answer);
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("- it is no JSON: {error}"))?;
        let faults = self.schema.faults(&value);
        if !faults.is_empty() {
            let lines: Vec<String> = faults.iter().map(line).collect();
            return Err(lines.join("\n"));
        }
        let value = match value {
            Value::Object(mut object) if self.wrapped => {
                object.remove(WRAPPED).unwrap_or(Value::Null)
            }
            value => value,
        };
        T::deserialize(value).map_err(|error| format!("- {error}"))
    }

    /// Begins to look at answers.
    pub fn attempt(self) -> TypedAttempt<T> {
        TypedAttempt {
            output: self,
            retries: 0,
            earlier: Vec::new(),
            usage: Usage::default(),
        }
    }
}

/// A value that is no object as the property of one.
fn wrap(mut schema: Value) -> Value {
    let mut root = serde_json::Map::new();
    if let Value::Object(inner) = &mut schema {
        for shared in ["$schema", "$defs"] {
            if let Some(value) = inner.remove(shared) {
                root.insert(shared.to_owned(), value);
            }
        }
    }
    root.insert("type".to_owned(), "object".into());
    root.insert(
        "properties".to_owned(),
        serde_json::json!({ WRAPPED: schema }),
    );
    root.insert("required".to_owned(), serde_json::json!([WRAPPED]));
    Value::Object(root)
}

fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"))
    else {
        return text;
    };
    inside.strip_prefix("json").unwrap_or(inside).trim()
}

fn line(fault: &ArgumentFault) -> String {
    format!("- {fault}")
}

/// The answers so far to one question.
#[derive(Debug)]
pub struct TypedAttempt<T> {
    output: TypedOutput<T>,
    retries: u32,
    earlier: Vec<ChatMessage>,
    usage: Usage,
}

impl<T: DeserializeOwned + JsonSchema> TypedAttempt<T> {
    /// Looks at a response: the value, or what to say to the model next.
    ///
    /// # Errors
    /// As [`TypedChatClientExt::get_typed`].
    pub fn look_at(
        &mut self,
        mut response: AgentResponse,
    ) -> Result<std::result::Result<TypedResponse<T>, ChatMessage>> {
        let text = response.text();
        let ended = response.finish_reason.clone();
        self.earlier.append(&mut response.messages);
        self.usage += &response.usage;
        if ended != FinishReason::Stop {
            let error = Error::misuse(format!(
                "the run ended without an answer ({ended:?}): look at the pending calls and limits of \
                 the error's leg"
            ));
            return Err(self.with_leg(error.with_code("no_answer"), response));
        }
        match self.output.read(&text) {
            Ok(value) => {
                response.messages = std::mem::take(&mut self.earlier);
                response.usage = std::mem::take(&mut self.usage);
                Ok(Ok(TypedResponse { value, response }))
            }
            Err(faults) if self.retries < MAX_RETRIES => {
                self.retries += 1;
                let feedback = feedback(&faults);
                self.earlier.push(feedback.clone());
                Ok(Err(feedback))
            }
            Err(_) => {
                let error = Error::new(
                    ErrorKind::Protocol,
                    format!(
                        "no answer fits the type '{}' after {} attempts: give the model an easier type \
                         or say more in its field docs",
                        self.output.declaration.name(),
                        self.retries + 1
                    ),
                );
                Err(self.with_leg(error, response))
            }
        }
    }

    /// The error that ended a leg, with what earlier attempts had said in front.
    pub fn failed(&mut self, mut error: Error) -> Error {
        if self.earlier.is_empty() {
            return error;
        }
        let mut leg = error.take_leg().unwrap_or_default();
        let mut messages = std::mem::take(&mut self.earlier);
        messages.append(&mut leg.messages);
        leg.messages = messages;
        let mut usage = std::mem::take(&mut self.usage);
        usage += &leg.usage;
        leg.usage = usage;
        error.with_leg(leg)
    }

    fn with_leg(&mut self, error: Error, response: AgentResponse) -> Error {
        let mut leg = LegSnapshot::default();
        leg.messages = std::mem::take(&mut self.earlier);
        leg.usage = std::mem::take(&mut self.usage);
        leg.run_id = response.run_id;
        leg.run_usage = response.run_usage;
        leg.rounds = response.rounds;
        leg.pending = response.pending;
        leg.abandoned = response.abandoned;
        error.with_leg(leg)
    }
}

fn feedback(faults: &str) -> ChatMessage {
    let text = format!(
        "Your answer does not fit the format that was asked for:\n{}\nAnswer again, with JSON alone.",
        cut(faults, MAX_FEEDBACK)
    );
    ChatMessage::builder(MessageRole::User)
        .content(Content::text(text))
        .source(MessageSource::Framework)
        .build()
}
