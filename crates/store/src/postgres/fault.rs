//! What PostgreSQL fails with, told as an error of the store. Never with the address, the password, or
//! a row: only the code and the first line of what the server says.

use std::fmt;

use raf_core::{Error, ErrorKind, RetryStatus};
use tokio_postgres::error::SqlState;

use crate::error::{closed, disk_full, failed};

/// What went wrong.
#[derive(Debug)]
pub(super) enum Fault {
    /// The driver or the server says so.
    Postgres(tokio_postgres::Error),
    /// It has its words already.
    Told(Error),
    /// There is no connection.
    NotConnected,
    /// A statement gave no row that always gives one.
    NoRow,
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Postgres(error) => told(&error),
            Fault::Told(error) => error,
            Fault::NotConnected => closed(),
            Fault::NoRow => Self::new(ErrorKind::Store, "a function of the store gave no row"),
        }
    }
}

impl Fault {
    /// Whether the connection was lost, or the server ends it: its others are then likely lost too.
    pub(super) fn is_lost_connection(&self) -> bool {
        match self {
            Self::Postgres(error) => match error.code() {
                // The server was told to end, or a connection to be ended.
                Some(code) => code.code().starts_with("57P"),
                None => true,
            },
            Self::Told(_) | Self::NotConnected | Self::NoRow => false,
        }
    }
}

/// The part of a driver's error that holds no secret.
#[derive(Debug)]
struct Said(String);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Said {}

fn told(error: &tokio_postgres::Error) -> Error {
    let Some(server) = error.as_db_error() else {
        if let Some(words) = refused_by_tls(error) {
            return words.with_source(Said(error.to_string()));
        }
        // A connection that could not be made or was lost, or an answer that is not understood.
        let words = "the connection to PostgreSQL could not be made or was lost: try again";
        return failed("connection", RetryStatus::Temporary, words)
            .with_source(Said(error.to_string()));
    };
    let code = server.code();
    let said = Said(format!("{}: {}", code.code(), server.message()));
    let class = code.code().get(..2).unwrap_or_default();
    let words = if *code == SqlState::DISK_FULL {
        disk_full()
    } else if matches!(class, "40" | "53" | "55" | "57" | "08") {
        failed(
            "busy",
            RetryStatus::Temporary,
            "PostgreSQL could not do it now: try again",
        )
    } else if class == "28" || *code == SqlState::INSUFFICIENT_PRIVILEGE {
        failed(
            "permission",
            RetryStatus::Permanent,
            "PostgreSQL lets this user not in, or not do this: look at the user's rights",
        )
    } else if code.code() == "RAF01" {
        failed(
            "later_format",
            RetryStatus::Permanent,
            "a later version wrote this record. It was left as it is; update raf here",
        )
    } else {
        Error::new(
            ErrorKind::Store,
            "PostgreSQL refused a statement of the store",
        )
    };
    words.with_source(said)
}

/// What TLS makes impossible, today and tomorrow: a server that is not trusted, or that does not speak it.
#[cfg(feature = "postgres-tls")]
fn refused_by_tls(error: &tokio_postgres::Error) -> Option<Error> {
    let source = std::error::Error::source(error)?;
    let of_tls = source
        .downcast_ref::<std::io::Error>()
        .and_then(|error| error.get_ref()?.downcast_ref::<rustls::Error>());
    if let Some(rustls::Error::InvalidCertificate(reason)) = of_tls {
        let words = format!(
            "the certificate of the PostgreSQL server is not trusted ({reason}): trust whoever signed it, and \
             address the server by a name that it is made out to"
        );
        return Some(failed("certificate", RetryStatus::Permanent, &words));
    }
    // The driver has no other sign of it.
    (source.to_string() == "server does not support TLS").then(|| {
        failed(
            "no_tls",
            RetryStatus::Permanent,
            "the PostgreSQL server does not speak TLS: switch it on there, or do without it here",
        )
    })
}

#[cfg(not(feature = "postgres-tls"))]
const fn refused_by_tls(_: &tokio_postgres::Error) -> Option<Error> {
    None
}
