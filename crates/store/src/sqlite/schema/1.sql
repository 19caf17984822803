-- Runs, in the order in which they began. `due_at` is when the run expires, or when all that it waits
-- for has expired.
CREATE TABLE raf_runs (
    age INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    session_id TEXT,
    format INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    working INTEGER NOT NULL,
    record TEXT NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    lease_until INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER NOT NULL,
    answerable_until INTEGER,
    due_at INTEGER NOT NULL
) STRICT;
CREATE INDEX raf_runs_due ON raf_runs (due_at);
CREATE INDEX raf_runs_open ON raf_runs (session_id, age) WHERE closed = 0;
CREATE INDEX raf_runs_working ON raf_runs (age) WHERE closed = 0 AND working = 1;

-- Requests of runs, open and settled.
CREATE TABLE raf_requests (
    request_id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX raf_requests_run ON raf_requests (run_id);

-- Answers that no leg has acted on.
CREATE TABLE raf_answers (
    arrival INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL,
    answer TEXT NOT NULL
) STRICT;
CREATE INDEX raf_answers_run ON raf_answers (run_id);

-- What the steps of runs came to.
CREATE TABLE raf_journal (
    root_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (root_id, run_id, place)
) STRICT, WITHOUT ROWID;

-- What people allowed once and for all.
CREATE TABLE raf_rules (
    arrival INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,
    rule TEXT NOT NULL,
    UNIQUE (scope, rule)
) STRICT;

-- Runs whose records are gone: they are not created again.
CREATE TABLE raf_tombstones (
    run_id TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX raf_tombstones_expiry ON raf_tombstones (expires_at);

-- Sessions without their messages, and the messages.
CREATE TABLE raf_sessions (
    session_id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    length INTEGER NOT NULL,
    head TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX raf_sessions_expiry ON raf_sessions (expires_at);
CREATE TABLE raf_messages (
    session_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (session_id, place)
) STRICT, WITHOUT ROWID;

-- Who may write to a session.
CREATE TABLE raf_session_leases (
    session_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
