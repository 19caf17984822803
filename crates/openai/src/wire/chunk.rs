//! The typed reading of a frame: borrowed, one pass, no allocation. It fails on anything out of the
//! ordinary, which then is read loosely (`loose.rs`): a member that is no text where a text belongs,
//! a key that comes twice, any field that holds more than the plain frame does.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use raf_core::Result;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use raf_wire::{CallPiece, Json};

use crate::response::Reply;
use crate::wire::usage;

/// One `chat.completion.chunk` with choices.
#[derive(Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    choices: Few<Choice<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(default, rename = "error")]
    _error: Nothing,
    #[serde(default, rename = "errors")]
    _errors: Nothing,
    #[serde(default, rename = "x_groq")]
    _x_groq: Nothing,
    #[serde(default, rename = "base_resp")]
    _base_resp: Nothing,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u32>,
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    #[serde(default, rename = "message")]
    _message: Nothing,
    #[serde(default, rename = "text")]
    _text: Nothing,
    #[serde(default, rename = "usage")]
    _usage: Nothing,
    #[serde(default, rename = "error")]
    _error: Nothing,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Few<CallDelta<'a>>>,
    #[serde(default, rename = "refusal")]
    _refusal: Nothing,
    #[serde(default, rename = "function_call")]
    _function_call: Nothing,
    #[serde(default, rename = "reasoning_details")]
    _reasoning_details: Nothing,
    #[serde(default, rename = "reasoning_text")]
    _reasoning_text: Nothing,
    #[serde(default, rename = "thinking")]
    _thinking: Nothing,
    #[serde(default, rename = "images")]
    _images: Nothing,
    #[serde(default, rename = "audio")]
    _audio: Nothing,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    function: Option<FunctionDelta<'a>>,
    #[serde(default, rename = "extra_content")]
    _extra_content: Nothing,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

impl<'a> Chunk<'a> {
    /// Reads a frame, unless it is out of the ordinary.
    pub(crate) fn parse(frame: &'a str) -> Option<Self> {
        let chunk: Self = serde_json::from_str(frame).ok()?;
        chunk.choices.first.is_some().then_some(chunk)
    }

    /// Tells the reply what the frame says.
    pub(crate) fn apply(&self, reply: &mut Reply) -> Result<()> {
        reply.identify(text(self.id.as_ref()), text(self.model.as_ref()));
        if let Some(raw) = self.usage
            && let Ok(value) = Json::parse(raw.get())
            && let Some(reported) = usage::read(&value)
        {
            reply.usage(reported);
        }
        for choice in self.choices.iter() {
            if choice.index.unwrap_or(0) == 0 {
                choice.apply(reply)?;
            }
        }
        Ok(())
    }
}

impl Choice<'_> {
    fn apply(&self, reply: &mut Reply) -> Result<()> {
        let delta = &self.delta;
        reply.delta_begins();
        let reasoning = match text(delta.reasoning_content.as_ref()) {
            "" => text(delta.reasoning.as_ref()),
            reasoning => reasoning,
        };
        reply.reasoning(reasoning);
        reply.text(text(delta.content.as_ref()));
        if let Some(calls) = &delta.tool_calls
            && calls.first.is_some()
        {
            reply.calls_begin();
            for call in calls.iter() {
                let function = call.function.as_ref();
                reply.call(CallPiece {
                    index: call.index,
                    id: text(call.id.as_ref()),
                    name: text(function.and_then(|function| function.name.as_ref())),
                    arguments: text(function.and_then(|function| function.arguments.as_ref())),
                    extra: None,
                })?;
            }
        }
        reply.finish_reason(text(self.finish_reason.as_ref()));
        Ok(())
    }
}

fn text<'t>(text: Option<&'t Text<'_>>) -> &'t str {
    text.map_or("", |Text(text)| text)
}

/// A string that is copied only if it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A list that holds one element nearly always.
struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
}

impl<T> Few<T> {
    fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.others)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FewVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FewVisitor<T> {
            type Value = Few<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Few<T>, A::Error> {
                let mut few = Few {
                    first: items.next_element()?,
                    others: Vec::new(),
                };
                while let Some(item) = items.next_element()? {
                    few.others.push(item);
                }
                Ok(few)
            }
        }
        deserializer.deserialize_seq(FewVisitor(PhantomData))
    }
}

/// A member that says nothing: null, false, or empty. Anything else fails the typed reading.
#[derive(Default)]
struct Nothing;

impl<'de> Deserialize<'de> for Nothing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NothingVisitor;
        impl<'de> Visitor<'de> for NothingVisitor {
            type Value = Nothing;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("nothing")
            }

            fn visit_unit<E>(self) -> Result<Nothing, E> {
                Ok(Nothing)
            }

            fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<Nothing, E> {
                if flag {
                    Err(E::custom("something"))
                } else {
                    Ok(Nothing)
                }
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Nothing, E> {
                if text.is_empty() {
                    Ok(Nothing)
                } else {
                    Err(E::custom("something"))
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Nothing, A::Error> {
                match items.next_element::<IgnoredAny>()? {
                    None => Ok(Nothing),
                    Some(_) => Err(serde::de::Error::custom("something")),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Nothing, A::Error> {
                match members.next_key::<IgnoredAny>()? {
                    None => Ok(Nothing),
                    Some(_) => Err(serde::de::Error::custom("something")),
                }
            }
        }
        deserializer.deserialize_any(NothingVisitor)
    }
}
