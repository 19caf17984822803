//! A provider of Chat Completions over a bare socket: just enough to hold the suite against.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    AgentResponseUpdate as Update, ChatClientMetadata, ChatClientRunOptions, ChatMessage, Emitter,
    Error, ErrorKind, Finish, FinishReason, IChatClient, MessageRole, MessageStatus,
    ResponseMetadata, Result, ToolCall, ToolCallHead, ToolChoice, UpdateStream, Usage, emit_stream,
};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

#[derive(Clone)]
pub(crate) struct PlainProvider {
    address: Arc<str>,
    key: Arc<str>,
}

impl PlainProvider {
    pub(crate) fn new(base_url: &str, key: &str) -> Self {
        let address = base_url
            .trim_start_matches("http://")
            .trim_end_matches("/v1");
        Self {
            address: address.into(),
            key: key.into(),
        }
    }

    async fn post(&self, body: &Value) -> Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&*self.address).await.map_err(|source| {
            Error::new(
                ErrorKind::Transport,
                format!("cannot reach {}", self.address),
            )
            .with_source(source)
        })?;
        let mut stream = BufReader::new(stream);
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer {}\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n",
            self.key,
            body.len()
        );
        stream.write_all(head.as_bytes()).await.map_err(broken)?;
        stream.write_all(body.as_bytes()).await.map_err(broken)?;
        let mut line = String::new();
        stream.read_line(&mut line).await.map_err(broken)?;
        let ok = line.contains(" 200 ");
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await.map_err(broken)?;
        }
        if ok {
            Ok(stream)
        } else {
            Err(Error::new(ErrorKind::InvalidRequest, "it was refused"))
        }
    }

    async fn play(self, body: Value, mut out: Emitter<Update>) -> Result<()> {
        let mut stream = self.post(&body).await?;
        let mut bytes: Vec<u8> = Vec::new();
        let mut reply = PlainReply::default();
        while let Some(chunk) = read_chunk(&mut stream).await? {
            bytes.extend(chunk);
            while let Some(end) = bytes.windows(2).position(|window| window == b"\n\n") {
                let event: Vec<u8> = bytes.drain(..end + 2).collect();
                let event = String::from_utf8_lossy(&event).into_owned();
                let data = event.trim().trim_start_matches("data: ");
                if data == "[DONE]" {
                    return reply.finish(&mut out).await;
                }
                let chunk: Value = serde_json::from_str(data).unwrap_or_default();
                reply.read(&chunk, &mut out).await?;
            }
        }
        Err(Error::new(
            ErrorKind::TruncatedStream,
            "the stream has no end",
        ))
    }
}

fn broken(source: std::io::Error) -> Error {
    Error::new(ErrorKind::TruncatedStream, "the connection broke").with_source(source)
}

async fn read_chunk(stream: &mut BufReader<TcpStream>) -> Result<Option<Vec<u8>>> {
    let mut size = String::new();
    stream.read_line(&mut size).await.map_err(broken)?;
    let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
        return Ok(None);
    };
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk).await.map_err(broken)?;
    chunk.truncate(size);
    Ok((size > 0).then_some(chunk))
}

#[derive(Default)]
struct PlainReply {
    started: bool,
    calls: Vec<(String, String, String)>,
    usage: Usage,
    reason: Option<FinishReason>,
}

impl PlainReply {
    async fn read(&mut self, chunk: &Value, out: &mut Emitter<Update>) -> Result<()> {
        let text = |value: &Value, pointer: &str| {
            let found = value.pointer(pointer).and_then(Value::as_str);
            found.map(str::to_owned)
        };
        if let Some(message) = text(chunk, "/error/message") {
            return Err(Error::new(ErrorKind::Server, message));
        }
        if !std::mem::replace(&mut self.started, true) {
            out.emit(Update::assistant_start()).await;
        }
        if let Some(said) = text(chunk, "/choices/0/delta/content").filter(|said| !said.is_empty())
        {
            out.emit(Update::text(said)).await;
        }
        let calls = chunk.pointer("/choices/0/delta/tool_calls");
        for call in calls.and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = text(call, "/function/name") {
                let id = text(call, "/id").unwrap_or_default();
                let position = u32::try_from(self.calls.len()).unwrap_or(0);
                let head = Box::new(ToolCallHead::new(&id, &name));
                out.emit(Update::ToolCallStart {
                    position,
                    call: head,
                })
                .await;
                self.calls.push((id, name, String::new()));
            }
            let index = call["index"].as_u64().unwrap_or(0);
            let delta = text(call, "/function/arguments").unwrap_or_default();
            self.calls[usize::try_from(index).unwrap_or(0)].2 += &delta;
            let position = u32::try_from(index).unwrap_or(0);
            out.emit(Update::ToolCallArgs { position, delta }).await;
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
            self.usage.input_tokens = count("/prompt_tokens");
            self.usage.output_tokens = count("/completion_tokens");
            self.usage.total_tokens = count("/total_tokens");
            self.usage.cached_tokens = count("/prompt_tokens_details/cached_tokens");
            self.usage.reasoning_tokens = count("/completion_tokens_details/reasoning_tokens");
        }
        if let Some(word) = text(chunk, "/choices/0/finish_reason") {
            self.reason = Some(match word.as_str() {
                "tool_calls" => FinishReason::ToolCalls,
                "length" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                _ => FinishReason::Stop,
            });
        }
        Ok(())
    }

    async fn finish(self, out: &mut Emitter<Update>) -> Result<()> {
        for (position, (id, name, arguments)) in (0..).zip(self.calls) {
            let call = ToolCall::new(id, name, arguments);
            out.emit(Update::ToolCallEnd { position, call }).await;
        }
        let status = MessageStatus::Complete;
        out.emit(Update::MessageEnd { status }).await;
        let metadata = Box::new(ResponseMetadata::default());
        out.emit(Update::ResponseMetadata { metadata }).await;
        let reason = self.reason.unwrap_or(FinishReason::Stop);
        let finish = Finish::new(reason).with_usage(self.usage);
        out.emit(Update::finish(finish)).await;
        Ok(())
    }
}

#[async_trait]
impl IChatClient for PlainProvider {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        options.refuse_resume_data()?;
        let body = request(messages, &options);
        let provider = self.clone();
        Ok(Box::pin(emit_stream(move |out| provider.play(body, out))))
    }

    fn metadata(&self) -> ChatClientMetadata {
        ChatClientMetadata::new("plain").with_endpoint(format!("http://{}/v1", self.address))
    }
}

fn request(messages: &[ChatMessage], options: &ChatClientRunOptions) -> Value {
    let mut body: Map<String, Value> = options.extra_body.clone();
    let given = [
        ("stream", json!(true)),
        ("stream_options", json!({"include_usage": true})),
        ("model", json!(options.model.as_deref().unwrap_or("plain"))),
        ("temperature", json!(options.temperature)),
        ("max_tokens", json!(options.max_output_tokens)),
    ];
    body.extend(given.map(|(name, value)| (name.to_owned(), value)));
    if options.tool_choice == Some(ToolChoice::Required) {
        body.insert("tool_choice".to_owned(), json!("required"));
    }
    let tools = options.tools.iter().map(|tool| {
        let (name, parameters) = (tool.name(), tool.parameters());
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    });
    body.insert("tools".to_owned(), tools.collect());
    let messages = messages.iter().map(|message| {
        let calls = message.tool_calls().map(|call| {
            let function = json!({"name": call.name(), "arguments": call.arguments()});
            json!({"id": call.id(), "type": "function", "function": function})
        });
        let mut wire = json!({"role": message.role(), "content": message.text()});
        if message.role() == MessageRole::Assistant {
            wire["tool_calls"] = calls.collect();
        }
        for result in message.tool_results() {
            wire["tool_call_id"] = result.call_id().into();
            wire["content"] = result.text().into();
        }
        wire
    });
    body.insert("messages".to_owned(), messages.collect());
    Value::Object(body)
}

impl fmt::Debug for PlainProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainProvider")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
