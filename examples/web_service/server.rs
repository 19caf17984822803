//! The server: what lives in its process, from its start to its end. A kill at any moment costs nothing.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use raf_core::CancellationToken;
use raf_framework::{RunProgress, WorkerOptions, run_worker};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::agent::agent;
use crate::player::{Begun, Player};
use crate::routes;
use crate::settings::{Settings, Stores};

/// How often the server looks for runs of others, for answers, and for what its watchers have not seen.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// What each request can use.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) stores: Stores,
    pub(crate) player: Player,
    /// Where a run goes that a request has begun: it outlives the request.
    pub(crate) begun: mpsc::Sender<Begun>,
    pub(crate) stop: CancellationToken,
}

/// Serves until Ctrl-C. Everything is a part of this future: nothing is detached.
pub(crate) async fn serve(listen: SocketAddr, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let stores = settings.open().await?;
    let player = Player::new(agent(&settings.payments)?, stores.clone());
    let listener = TcpListener::bind(listen).await?;
    println!("Listening on http://{}", listener.local_addr()?);
    let stop = CancellationToken::new();
    let (begun, begun_runs) = mpsc::channel(16);
    let service = Service {
        stores: stores.clone(),
        player: player.clone(),
        begun,
        stop: stop.clone(),
    };
    let http = async {
        let server = axum::serve(listener, routes::router(service));
        let ended = server
            .with_graceful_shutdown(stop.clone().cancelled_owned())
            .await;
        stop.cancel();
        ended
    };
    let signal = async {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => stop.cancel(),
            () = stop.cancelled() => {}
        }
    };
    // Runs whose server died, and runs whose answers were given, by whomever.
    let options = WorkerOptions::new().with_every(LOOK);
    let worker = run_worker(&stores.runs, &player, options, &stop, |run| {
        let came_to = match &run.progress {
            RunProgress::Finished(_) => "its end",
            RunProgress::Waits(_) => "a call that waits",
            RunProgress::Failed(error) => {
                tracing::warn!(%error, run = %run.run_id, "a run could not be taken up");
                return;
            }
            // Somebody else has it, or it is held by a server that died a moment ago.
            _ => return,
        };
        println!("Took up run {} and played it to {came_to}.", run.run_id);
    });
    let begun = player.play_begun(begun_runs, &stop);
    let (ended, (), (), ()) = futures::join!(http, worker, begun, signal);
    Ok(ended?)
}
