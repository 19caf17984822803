//! What is logged on the thread that plays a case, at the default level.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// What was logged. A cheap handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Listens on this thread until what it returns is dropped.
    pub(crate) fn listen(&self) -> impl Sized + use<> {
        let log = self.clone();
        tracing_subscriber::fmt()
            .with_writer(move || log.clone())
            .with_max_level(LevelFilter::INFO)
            .with_ansi(false)
            .finish()
            .set_default()
    }

    /// Everything until now.
    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
