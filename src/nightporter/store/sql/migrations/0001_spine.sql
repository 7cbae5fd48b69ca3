-- The ledger's first shape. Instants are microseconds UTC; JSON is text; booleans are 0 and 1.
-- Read for both databases: on PostgreSQL INTEGER becomes BIGINT and the table options fall away.
-- Tables that grow with every run are clustered on their time-prefixed text id, so that inserts append.

CREATE TABLE setting (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE automation (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    state_reason TEXT NOT NULL DEFAULT '',
    state_by TEXT NOT NULL DEFAULT '',
    state_at INTEGER NOT NULL,
    state_until INTEGER,                       -- a pause that ends by itself
    state_before TEXT NOT NULL DEFAULT '',     -- JSON of what a broken one was: a mended one returns to it
    truth TEXT NOT NULL,                       -- file | store | code: where it may be edited
    path TEXT NOT NULL DEFAULT '',             -- of its file
    error TEXT NOT NULL DEFAULT '',            -- JSON of a definition that cannot be read
    version INTEGER NOT NULL,                  -- of the definition in force
    definition_hash TEXT NOT NULL,
    concurrent INTEGER,                        -- runs at once; NULL is none
    cooldown INTEGER NOT NULL DEFAULT 0,
    expires INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- health: derived, kept in the transactions that change it
    last_started_at INTEGER,                   -- latest attempt that was not manual; kept where there is a cooldown
    last_run_id TEXT,
    last_outcome TEXT,
    last_success_at INTEGER,
    last_failure_at INTEGER,
    errors_in_a_row INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX automation_name ON automation (workspace, name) WHERE state <> 'removed';
CREATE INDEX automation_called ON automation (name);
CREATE INDEX automation_file ON automation (path) WHERE truth = 'file';
CREATE INDEX automation_program ON automation (path) WHERE truth = 'code';
CREATE INDEX automation_until ON automation (state_until) WHERE state_until IS NOT NULL;
CREATE INDEX automation_expires ON automation (expires) WHERE expires IS NOT NULL;

CREATE TABLE automation_version (
    automation_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    definition TEXT NOT NULL,
    definition_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (automation_id, version)
) STRICT;

CREATE TABLE trigger (
    id TEXT NOT NULL PRIMARY KEY,              -- automation id / name
    automation_id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    policy TEXT NOT NULL,                      -- words.Policy, resolved
    schedule TEXT,                             -- JSON [kind, expression, timezone, anchor]; clock only
    version INTEGER NOT NULL,                  -- of the schedule: trigger_version
    next_fire_at INTEGER,                      -- the armed slot; NULL is not armed
    tzdata TEXT NOT NULL DEFAULT '',           -- release the armed slot was computed with
    wall INTEGER,                              -- seconds: what the zone's clock shows then, where the schedule goes by it
    created_at INTEGER NOT NULL,
    removed_at INTEGER,
    error TEXT NOT NULL DEFAULT '',            -- why it is out of the loop: quarantined
    firings INTEGER NOT NULL DEFAULT 0,
    runs INTEGER NOT NULL DEFAULT 0,
    last_fired_at INTEGER,
    last_verdict TEXT,
    last_reason TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX trigger_due ON trigger (next_fire_at) WHERE next_fire_at IS NOT NULL;
CREATE INDEX trigger_of_automation ON trigger (automation_id);

CREATE TABLE trigger_version (
    trigger_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    schedule TEXT NOT NULL,
    timezone TEXT NOT NULL,
    tzdata TEXT NOT NULL,
    valid_from INTEGER NOT NULL,               -- slots strictly after it are owed
    valid_to INTEGER,                          -- slots up to and including it are owed
    PRIMARY KEY (trigger_id, version)
) STRICT;

CREATE TABLE pause (                           -- spans in which an automation's slots are answered by one line
    automation_id TEXT NOT NULL,
    paused_from INTEGER NOT NULL,
    paused_to INTEGER,
    reason TEXT NOT NULL,
    PRIMARY KEY (automation_id, paused_from)
) STRICT;

CREATE TABLE firing (                          -- the ledger: one line per arrival, never edited
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    source TEXT NOT NULL,                      -- the trigger's kind
    external_id TEXT NOT NULL,
    dedupe_key TEXT,                           -- the external id, where the verdict keeps it
    scheduled_for INTEGER,
    arrived_at INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT,
    detail TEXT NOT NULL DEFAULT '',
    run_id TEXT,
    version INTEGER NOT NULL,                  -- of the schedule that named the slot
    slot_from INTEGER,
    slot_to INTEGER,
    slots INTEGER,                             -- how many one line answers
    slots_exact INTEGER,
    sender TEXT NOT NULL DEFAULT '',
    owner TEXT NOT NULL DEFAULT '',
    root TEXT,
    depth INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX firing_dedupe ON firing (trigger_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX firing_of_automation ON firing (automation_id, arrived_at);

CREATE TABLE firing_payload (
    firing_id TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL,
    payload TEXT,
    metadata TEXT
) STRICT;

CREATE TABLE run (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    firing_id TEXT NOT NULL,
    source TEXT NOT NULL,
    version INTEGER NOT NULL,                  -- of the definition it runs
    runner TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    blocked TEXT,                              -- why a queued run may not be claimed: time | overlap | concurrency
    rank INTEGER NOT NULL,                     -- run_after + priority x 10 s: ageing for free
    run_after INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,        -- raised before the runner is called
    attempts INTEGER NOT NULL,
    token INTEGER NOT NULL DEFAULT 0,          -- raised by every claim; fences every write of the holder
    seq INTEGER NOT NULL DEFAULT 1,            -- transitions so far
    worker TEXT,
    scheduled_for INTEGER,
    queued_at INTEGER NOT NULL,
    started_at INTEGER,                        -- of the first attempt, written before launch
    attempt_at INTEGER,                        -- of the latest attempt
    ended_at INTEGER,
    ran_late INTEGER NOT NULL DEFAULT 0,
    outcome TEXT,
    error_class TEXT,
    error TEXT NOT NULL DEFAULT '',
    exit_code INTEGER,
    cancel_at INTEGER,
    cancel_by TEXT NOT NULL DEFAULT '',
    cancel_reason TEXT,
    dead_at INTEGER,                           -- dead letter since
    root TEXT,
    depth INTEGER NOT NULL DEFAULT 0,
    replay_of TEXT,
    has_payload INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX run_claimable ON run (workspace, rank) WHERE state = 'queued' AND blocked IS NULL;
CREATE INDEX run_timed ON run (run_after) WHERE blocked = 'time';
CREATE INDEX run_behind ON run (automation_id, blocked, rank) WHERE blocked IS NOT NULL;
CREATE INDEX run_active ON run (automation_id, state) WHERE state IN ('queued', 'running', 'held', 'lost');
CREATE INDEX run_of_worker ON run (worker) WHERE state = 'running';
CREATE INDEX run_of_automation ON run (automation_id, queued_at);
CREATE INDEX run_dead ON run (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX run_open ON run (state) WHERE state IN ('lost', 'review', 'held');

CREATE TABLE run_output (
    run_id TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL,
    data TEXT,
    log TEXT NOT NULL
) STRICT;

CREATE TABLE transition (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    reason TEXT,
    at INTEGER NOT NULL,
    worker TEXT,
    token INTEGER,
    attempt INTEGER NOT NULL,
    error_class TEXT,
    PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE effect (
    run_id TEXT NOT NULL,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,                       -- intended | done
    attempt INTEGER NOT NULL,
    token INTEGER NOT NULL,
    intended_at INTEGER NOT NULL,
    done_at INTEGER,
    permalink TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, key)
) STRICT;

CREATE TABLE child (                           -- process groups that may outlive their desk
    run_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    worker TEXT NOT NULL,
    host TEXT NOT NULL,
    process_group INTEGER NOT NULL,
    started INTEGER NOT NULL,                  -- the kernel's start time of its leader
    PRIMARY KEY (run_id, token)
) STRICT;

CREATE TABLE delivery (
    id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    workspace TEXT NOT NULL,
    destination TEXT NOT NULL,                 -- its name in the definition
    kind TEXT NOT NULL,
    lane TEXT NOT NULL,                        -- what shares one receiver; one lane never holds up another
    state TEXT NOT NULL,
    reason TEXT,
    best_effort INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    tries_before INTEGER NOT NULL DEFAULT 0,   -- made before a person sent it again; they no longer count
    token INTEGER NOT NULL DEFAULT 0,
    worker TEXT,
    next_try_at INTEGER,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    evidence TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_of_run ON delivery (run_id);
CREATE INDEX delivery_due ON delivery (next_try_at) WHERE state = 'pending';
CREATE INDEX delivery_of_worker ON delivery (worker) WHERE state = 'sending';
CREATE INDEX delivery_failed ON delivery (ended_at) WHERE state IN ('given_up', 'unknown');

CREATE TABLE delivery_try (
    delivery_id TEXT NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    result TEXT NOT NULL,                      -- words.Receipt
    status INTEGER,
    event_id TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (delivery_id, n)
) STRICT;

CREATE TABLE inbox (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    owner TEXT NOT NULL,
    automation_id TEXT,
    run_id TEXT,
    kind TEXT NOT NULL,                        -- result | dead_letter | review | given_up | restart | definition | auto_paused
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    read_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_unread ON inbox (created_at) WHERE read_at IS NULL;
CREATE INDEX inbox_read ON inbox (read_at) WHERE read_at IS NOT NULL;

CREATE TABLE worker (
    id TEXT NOT NULL PRIMARY KEY,
    role TEXT NOT NULL,                        -- desk | worker | command | tick
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    beat INTEGER NOT NULL,                     -- the lease: a counter it raises
    lock_path TEXT NOT NULL,                   -- held while it lives, where the file system is shared
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_how TEXT NOT NULL DEFAULT ''         -- stopped | dead
) STRICT;
CREATE INDEX worker_alive ON worker (id) WHERE ended_at IS NULL;

CREATE TABLE rollup_month (
    automation_id TEXT NOT NULL,
    month TEXT NOT NULL,                       -- 2026-11, in the automation's zone
    runs INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    quiet INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (automation_id, month)
) STRICT;

CREATE TABLE definition_change (
    id TEXT NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    workspace TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    verb TEXT NOT NULL,
    version INTEGER NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX definition_change_of ON definition_change (automation_id, at);

CREATE TABLE quarantine (                      -- rows that cannot be read: out of the loop, said once
    subject TEXT NOT NULL,
    key TEXT NOT NULL,
    error TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (subject, key)
) STRICT;
