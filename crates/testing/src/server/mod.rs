//! An HTTP/1.1 server on loopback that a test controls write by write.

mod connection;
mod request;
mod response;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use request::HttpRequest;
pub use response::HttpResponse;

type Handler = Arc<dyn Fn(&HttpRequest) -> HttpResponse + Send + Sync>;

/// A server on a free port of 127.0.0.1 that answers as scripted: a queue of responses, then a
/// handler if there is one. It lives as long as this handle: dropping it stops every connection.
///
/// Waiting is by latch, never by sleep. Take care with a paused tokio clock: while a test waits for
/// the network tokio thinks that nothing happens, and lets timeouts fire.
///
/// ```
/// use raf_testing::{HttpResponse, HttpServer};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let server = HttpServer::start([HttpResponse::new(200).body("hello")]);
/// assert!(server.url().starts_with("http://127.0.0.1:"));
/// # }
/// ```
pub struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    counts: watch::Sender<Counts>,
}

#[derive(Default)]
struct State {
    responses: VecDeque<HttpResponse>,
    handler: Option<Handler>,
    requests: Vec<HttpRequest>,
    violations: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    requests: usize,
    connections: usize,
    client_left: usize,
}

impl HttpServer {
    /// Starts a server that gives these responses in order.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if loopback has no free port.
    pub fn start(responses: impl IntoIterator<Item = HttpResponse>) -> Self {
        Self::serve(State {
            responses: responses.into_iter().collect(),
            ..State::default()
        })
    }

    /// Starts a server that answers by what is asked.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if loopback has no free port.
    pub fn start_with(
        handler: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        Self::serve(State {
            handler: Some(Arc::new(handler)),
            ..State::default()
        })
    }

    fn serve(state: State) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a port");
        listener
            .set_nonblocking(true)
            .expect("a listener can be non-blocking");
        let listener = TcpListener::from_std(listener).expect("there is a tokio runtime");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            counts: watch::Sender::new(Counts::default()),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _accepting: accepting,
        }
    }

    /// A base URL on loopback where nobody listens: connections are refused.
    pub fn refused_url() -> String {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a port");
        let address = listener.local_addr().expect("a listener has an address");
        format!("http://{address}")
    }

    /// `http://127.0.0.1:port`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a response at the end of the queue.
    pub fn push(&self, response: HttpResponse) {
        self.shared.lock().responses.push_back(response);
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.shared.lock().requests.clone()
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.counts.borrow().connections
    }

    /// How often a client closed its connection while a response was being written.
    pub fn client_left(&self) -> usize {
        self.shared.counts.borrow().client_left
    }

    /// Waits until this many requests have come.
    pub async fn wait_for_requests(&self, count: usize) {
        self.wait(|counts| counts.requests >= count).await;
    }

    /// Waits until clients have left this many responses before their end.
    pub async fn wait_for_client_left(&self, count: usize) {
        self.wait(|counts| counts.client_left >= count).await;
    }

    async fn wait(&self, reached: impl Fn(&Counts) -> bool) {
        let mut counts = self.shared.counts.subscribe();
        let _ = counts.wait_for(|counts| reached(counts)).await;
    }

    /// Checks that every queued response was used, and that there was one for each request.
    ///
    /// # Panics
    /// If a response is left, or a request came beyond the queue.
    #[track_caller]
    pub fn assert_done(&self) {
        let state = self.shared.lock();
        let mut faults = state.violations.clone();
        if !state.responses.is_empty() {
            faults.push(format!(
                "{} of the scripted responses were not asked for; {} requests came",
                state.responses.len(),
                state.requests.len()
            ));
        }
        drop(state);
        assert!(
            faults.is_empty(),
            "the script of the server was not followed:\n- {}",
            faults.join("\n- ")
        );
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_modify(change);
    }

    /// Records a request and says what to answer.
    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let mut state = self.lock();
        state.requests.push(request.clone());
        let queued = state.responses.pop_front();
        let handler = state.handler.clone();
        if queued.is_none() && handler.is_none() {
            let text = format!(
                "{} {} came, but the script has no response left for it",
                request.method, request.path
            );
            state.violations.push(text);
        }
        drop(state);
        self.count(|counts| counts.requests += 1);
        match (queued, handler) {
            (Some(response), _) => response,
            (None, Some(handler)) => handler(request),
            (None, None) => HttpResponse::json(
                500,
                &serde_json::json!({"error": {
                    "message": "the script of the loopback server has no response left",
                    "type": "script_exhausted",
                }}),
            ),
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let number = shared.counts.borrow().connections;
                shared.count(|counts| counts.connections += 1);
                connections.spawn(connection::serve(stream, number, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
