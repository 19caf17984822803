-- Times are milliseconds since 1970 began, by the server's clock; `ahead` is what a test adds to it.

CREATE FUNCTION raf_now(ahead bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + ahead
$$;

-- Runs, in the order in which they began. `due_at` is when the run expires, or when all that it waits
-- for has expired. `json` keeps the text as it was written.
CREATE TABLE raf_runs (
    age bigserial PRIMARY KEY,
    run_id text NOT NULL UNIQUE,
    session_id text,
    format integer NOT NULL,
    revision bigint NOT NULL,
    closed boolean NOT NULL,
    working boolean NOT NULL,
    record json NOT NULL,
    fence bigint NOT NULL,
    owner text,
    lease_until bigint NOT NULL,
    expires_at bigint NOT NULL,
    answerable_until bigint,
    due_at bigint NOT NULL
);
CREATE INDEX raf_runs_due ON raf_runs (due_at);
CREATE INDEX raf_runs_open ON raf_runs (session_id, age) WHERE NOT closed;
CREATE INDEX raf_runs_working ON raf_runs (age) WHERE NOT closed AND working;

CREATE TABLE raf_requests (
    request_id text PRIMARY KEY,
    run_id text NOT NULL
);
CREATE INDEX raf_requests_run ON raf_requests (run_id);

-- Answers that no leg has acted on.
CREATE TABLE raf_answers (
    arrival bigserial PRIMARY KEY,
    request_id text NOT NULL UNIQUE,
    run_id text NOT NULL,
    answer json NOT NULL
);
CREATE INDEX raf_answers_run ON raf_answers (run_id);

-- What the steps of runs came to.
CREATE TABLE raf_journal (
    root_id text NOT NULL,
    run_id text NOT NULL,
    place bigint NOT NULL,
    entry json NOT NULL,
    PRIMARY KEY (root_id, run_id, place)
);

CREATE TABLE raf_rules (
    arrival bigserial PRIMARY KEY,
    scope text NOT NULL,
    rule text NOT NULL,
    UNIQUE (scope, rule)
);

-- Runs whose records are gone: they are not created again.
CREATE TABLE raf_tombstones (
    run_id text PRIMARY KEY,
    expires_at bigint NOT NULL
);
CREATE INDEX raf_tombstones_expiry ON raf_tombstones (expires_at);

-- Sessions without their messages, and the messages.
CREATE TABLE raf_sessions (
    session_id text PRIMARY KEY,
    revision bigint NOT NULL,
    length bigint NOT NULL,
    head json NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX raf_sessions_expiry ON raf_sessions (expires_at);
CREATE TABLE raf_messages (
    session_id text NOT NULL,
    place bigint NOT NULL,
    message json NOT NULL,
    PRIMARY KEY (session_id, place)
);

-- Who may write to a session.
CREATE TABLE raf_session_leases (
    session_id text PRIMARY KEY,
    owner text NOT NULL,
    lease_until bigint NOT NULL
);

CREATE FUNCTION raf_set_due(id text) RETURNS void LANGUAGE sql AS $$
    UPDATE raf_runs SET due_at = CASE
        WHEN answerable_until IS NULL OR answerable_until > expires_at
            OR EXISTS (SELECT 1 FROM raf_answers a WHERE a.run_id = id)
        THEN expires_at ELSE answerable_until END
    WHERE run_id = id
$$;

-- A new record, unless the run is known; whether it was kept.
CREATE FUNCTION raf_create(
    ahead bigint, lifetime bigint, lease bigint, id text, new_session text, new_format integer,
    is_closed boolean, is_working boolean, new_record text, answerable bigint, requests text[],
    new_owner text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    now_ms bigint := raf_now(ahead);
BEGIN
    IF EXISTS (SELECT 1 FROM raf_tombstones t WHERE t.run_id = id AND t.expires_at > now_ms) THEN
        RETURN false;
    END IF;
    INSERT INTO raf_runs (run_id, session_id, format, revision, closed, working, record, fence, owner,
        lease_until, expires_at, answerable_until, due_at)
    VALUES (id, new_session, new_format, 1, is_closed, is_working, new_record::json,
        CASE WHEN new_owner IS NULL THEN 0 ELSE 1 END, new_owner,
        CASE WHEN new_owner IS NULL THEN 0 ELSE now_ms + lease END,
        now_ms + lifetime, answerable, least(now_ms + lifetime, answerable))
    ON CONFLICT (run_id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO raf_requests (request_id, run_id) SELECT unnest(requests), id ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- Writes over the record of a revision: `written`, `conflict`, or `later_format`.
CREATE FUNCTION raf_write(
    ahead bigint, lifetime bigint, id text, base bigint, new_session text, new_format integer,
    is_closed boolean, is_working boolean, new_record text, answerable bigint, requests text[],
    settled text[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    run raf_runs;
BEGIN
    SELECT * INTO run FROM raf_runs r WHERE r.run_id = id FOR UPDATE;
    IF NOT FOUND OR run.revision <> base THEN
        RETURN 'conflict';
    ELSIF run.format > new_format THEN
        RETURN 'later_format';
    END IF;
    DELETE FROM raf_answers a WHERE a.run_id = id AND (is_closed OR a.request_id = ANY (settled));
    INSERT INTO raf_requests (request_id, run_id) SELECT unnest(requests), id ON CONFLICT DO NOTHING;
    UPDATE raf_runs SET session_id = new_session, format = new_format, revision = base + 1,
        closed = is_closed, working = is_working, record = new_record::json,
        expires_at = raf_now(ahead) + lifetime, answerable_until = answerable
    WHERE run_id = id;
    PERFORM raf_set_due(id);
    RETURN 'written';
END $$;

-- Appends to a journal, and writes the root run's record if one is given (`rec_base` is its revision):
-- `created`, `written`, `conflict`, `lost` or `later_format`.
CREATE FUNCTION raf_append(
    ahead bigint, lifetime bigint, lease bigint, root text, nested text, by_owner text, by_fence bigint,
    base bigint, entries text[], rec_base bigint, new_session text, new_format integer,
    is_closed boolean, is_working boolean, new_record text, answerable bigint, requests text[],
    settled text[], OUT outcome text, OUT written bigint
) LANGUAGE plpgsql AS $$
DECLARE
    run raf_runs;
    now_ms bigint := raf_now(ahead);
    present bigint;
    extent bigint := base + cardinality(entries);
BEGIN
    SELECT * INTO run FROM raf_runs r WHERE r.run_id = root FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 'conflict';
        IF rec_base = 0 AND base = 0 THEN
            IF raf_create(ahead, lifetime, lease, root, new_session, new_format, is_closed, is_working,
                new_record, answerable, requests, by_owner)
            THEN
                outcome := 'created';
                written := 1;
                INSERT INTO raf_journal SELECT root, nested, e.place - 1, e.entry::json
                    FROM unnest(entries) WITH ORDINALITY AS e (entry, place);
            END IF;
        END IF;
        RETURN;
    ELSIF run.owner IS DISTINCT FROM by_owner OR run.fence IS DISTINCT FROM by_fence THEN
        outcome := 'lost';
        RETURN;
    END IF;
    -- By the index's end: a step costs the same however long the journal is.
    SELECT j.place + 1 INTO present FROM raf_journal j
        WHERE j.root_id = root AND j.run_id = nested ORDER BY j.place DESC LIMIT 1;
    present := coalesce(present, 0);
    IF present <> base OR rec_base <> run.revision THEN
        outcome := 'conflict';
        IF present = extent
            AND (rec_base IS NULL
                OR (rec_base + 1 = run.revision AND run.record::text = new_record))
            AND entries = (SELECT coalesce(array_agg(j.entry::text ORDER BY j.place), '{}')
                FROM raf_journal j
                WHERE j.root_id = root AND j.run_id = nested AND j.place >= base)
        THEN
            outcome := 'written';
            written := CASE WHEN rec_base IS NULL THEN extent ELSE run.revision END;
        END IF;
        RETURN;
    END IF;
    outcome := 'written';
    written := extent;
    INSERT INTO raf_journal SELECT root, nested, base + e.place - 1, e.entry::json
        FROM unnest(entries) WITH ORDINALITY AS e (entry, place);
    -- A write is a sign of life; it is written down only when it changes much.
    IF now_ms + lease - run.lease_until > lease / 4 THEN
        UPDATE raf_runs SET lease_until = now_ms + lease WHERE run_id = root;
    END IF;
    IF rec_base IS NOT NULL THEN
        outcome := raf_write(ahead, lifetime, root, rec_base, new_session, new_format, is_closed,
            is_working, new_record, answerable, requests, settled);
        written := rec_base + 1;
        IF outcome <> 'written' THEN
            RAISE EXCEPTION 'the record is of a later format' USING ERRCODE = 'RAF01';
        END IF;
    ELSIF now_ms + lifetime - run.expires_at > lifetime / 100 THEN
        UPDATE raf_runs SET expires_at = now_ms + lifetime WHERE run_id = root;
        PERFORM raf_set_due(root);
    END IF;
END $$;

-- Takes hold of a run: `claimed`, `busy`, `missing`, or `due` if it is over.
CREATE FUNCTION raf_claim(
    ahead bigint, lease bigint, id text, by_owner text,
    OUT outcome text, OUT by_fence bigint, OUT kept text
) LANGUAGE plpgsql AS $$
DECLARE
    run raf_runs;
    now_ms bigint := raf_now(ahead);
BEGIN
    SELECT * INTO run FROM raf_runs r WHERE r.run_id = id FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 'missing';
    ELSIF run.owner <> by_owner AND run.lease_until > now_ms THEN
        outcome := 'busy';
    ELSIF run.due_at <= now_ms AND (run.closed OR run.owner IS NULL OR run.lease_until <= now_ms) THEN
        outcome := 'due';
    ELSE
        outcome := 'claimed';
        by_fence := run.fence + 1;
        kept := run.record::text;
        UPDATE raf_runs SET owner = by_owner, fence = by_fence, lease_until = now_ms + lease
            WHERE run_id = id;
    END IF;
END $$;

-- Keeps an answer that was found to fit the record of a revision: `kept`, `changed` or `settled`.
CREATE FUNCTION raf_answer(id text, base bigint, request text, new_answer text)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM raf_runs r WHERE r.run_id = id AND r.revision = base FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'changed';
    END IF;
    INSERT INTO raf_answers (request_id, run_id, answer) VALUES (request, id, new_answer::json)
        ON CONFLICT (request_id) DO NOTHING;
    IF NOT FOUND THEN
        RETURN 'settled';
    END IF;
    PERFORM raf_set_due(id);
    RETURN 'kept';
END $$;

-- Forgets a closed run that is over.
CREATE FUNCTION raf_forget(ahead bigint, lifetime bigint, id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM raf_runs r WHERE r.run_id = id AND r.closed AND r.due_at <= raf_now(ahead);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO raf_tombstones VALUES (id, raf_now(ahead) + 2 * lifetime)
        ON CONFLICT (run_id) DO UPDATE SET expires_at = excluded.expires_at;
    DELETE FROM raf_requests r WHERE r.run_id = id;
    DELETE FROM raf_answers a WHERE a.run_id = id;
    DELETE FROM raf_journal j WHERE j.root_id = id;
    DELETE FROM raf_rules r WHERE r.scope = id;
END $$;

-- Whether a session's time is over and nobody writes to it.
CREATE FUNCTION raf_session_is_over(ahead bigint, id text, until bigint) RETURNS boolean
LANGUAGE sql AS $$
    SELECT until <= raf_now(ahead) AND NOT EXISTS (
        SELECT 1 FROM raf_session_leases l WHERE l.session_id = id AND l.lease_until > raf_now(ahead))
$$;

-- Forgets sessions that are over; how many.
CREATE FUNCTION raf_expire_sessions(ahead bigint) RETURNS bigint LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM raf_sessions s WHERE s.expires_at <= raf_now(ahead)
            AND raf_session_is_over(ahead, s.session_id, s.expires_at) RETURNING s.session_id
    ), messages AS (
        DELETE FROM raf_messages m USING gone WHERE m.session_id = gone.session_id
    )
    SELECT count(*) FROM gone
$$;

-- Lays a change over a session: `written`, `conflict` or `lost`. Without a new head the old one stays.
CREATE FUNCTION raf_write_session(
    ahead bigint, lifetime bigint, id text, base bigint, by_owner text, first_head text, new_head text,
    messages text[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    session raf_sessions;
BEGIN
    IF by_owner IS NOT NULL THEN
        PERFORM 1 FROM raf_session_leases l WHERE l.session_id = id AND l.owner = by_owner FOR SHARE;
        IF NOT FOUND THEN
            RETURN 'lost';
        END IF;
    END IF;
    SELECT * INTO session FROM raf_sessions s WHERE s.session_id = id FOR UPDATE;
    IF FOUND AND raf_session_is_over(ahead, id, session.expires_at) THEN
        DELETE FROM raf_messages m WHERE m.session_id = id;
        DELETE FROM raf_sessions s WHERE s.session_id = id;
        session := NULL;
    END IF;
    IF coalesce(session.revision, 0) <> base THEN
        RETURN 'conflict';
    ELSIF session.revision IS NULL THEN
        INSERT INTO raf_sessions VALUES (id, 1, cardinality(messages), coalesce(new_head, first_head)::json,
            raf_now(ahead) + lifetime) ON CONFLICT (session_id) DO NOTHING;
        IF NOT FOUND THEN
            RETURN 'conflict';
        END IF;
    ELSE
        UPDATE raf_sessions SET revision = base + 1, length = length + cardinality(messages),
            head = coalesce(new_head::json, head), expires_at = raf_now(ahead) + lifetime
        WHERE session_id = id;
    END IF;
    INSERT INTO raf_messages SELECT id, coalesce(session.length, 0) + e.place - 1, e.message::json
        FROM unnest(messages) WITH ORDINALITY AS e (message, place);
    RETURN 'written';
END $$;
