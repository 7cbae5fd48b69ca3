-- Time in full, failures told once, and the account of what did not happen.

-- gates: what a trigger has counted
ALTER TABLE trigger ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;   -- arrivals since its threshold last let one through
ALTER TABLE trigger ADD COLUMN counted_at INTEGER;                  -- when the first of those arrived
ALTER TABLE automation ADD COLUMN counted_runs INTEGER NOT NULL DEFAULT 0;   -- of its schedules, where `max_runs` is set
ALTER TABLE automation ADD COLUMN counted_from INTEGER;             -- when the first of those was admitted
ALTER TABLE run ADD COLUMN merge_key TEXT;                          -- it waits for others like it, or did
ALTER TABLE run ADD COLUMN merged INTEGER NOT NULL DEFAULT 0;       -- arrivals that were folded into it
ALTER TABLE run ADD COLUMN carries TEXT;                            -- the firing whose payload it carries; NULL: its own, and what was folded in

-- account: what was said of the desk itself
ALTER TABLE worker ADD COLUMN draining_at INTEGER;         -- since when it takes nothing more and lets its runs end

CREATE TABLE flag (                            -- what a sweep has found not to be as it should be, until it is again
    kind TEXT NOT NULL,                        -- ledger.tasks.Kind
    subject TEXT NOT NULL,
    at INTEGER NOT NULL,                       -- when it was first found
    PRIMARY KEY (kind, subject)
) STRICT;

CREATE TABLE heartbeat (                       -- what the desk said of itself, a day each
    slot INTEGER NOT NULL PRIMARY KEY,         -- when it was due
    said_at INTEGER NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL                         -- JSON: what is carried to its destinations
) STRICT, WITHOUT ROWID;

CREATE TABLE heartbeat_sent (                  -- and where it went, beside the inbox
    slot INTEGER NOT NULL,
    destination TEXT NOT NULL,
    state TEXT NOT NULL,                       -- pending | delivered | unverified | given_up
    tries INTEGER NOT NULL DEFAULT 0,
    next_try_at INTEGER,
    ended_at INTEGER,
    evidence TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (slot, destination)
) STRICT;

-- looks: what the looks of runs saw, and what is kept of looks from run to run
CREATE TABLE run_look (
    run_id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    answer TEXT NOT NULL,                      -- words.Sight
    text TEXT NOT NULL                         -- what it saw, or why it failed
) STRICT;
CREATE TABLE look_state (
    automation_id TEXT NOT NULL,
    look TEXT NOT NULL,                        -- words.Look.key: another look begins anew
    state TEXT NOT NULL,                       -- JSON
    version INTEGER NOT NULL,                  -- a run that saw an older one changes nothing
    run_id TEXT NOT NULL,                      -- that left it
    at INTEGER NOT NULL,
    PRIMARY KEY (automation_id, look)
) STRICT;
ALTER TABLE child ADD COLUMN look INTEGER NOT NULL DEFAULT 0;        -- 1: a look's; the work has not begun

-- expiry: what is renewed, and what was said of its end
ALTER TABLE automation ADD COLUMN renewed_at INTEGER;                -- what its time is counted from
ALTER TABLE automation ADD COLUMN expiry_told INTEGER NOT NULL DEFAULT 0;   -- 1: a week before, 2: a day, 3: after
UPDATE automation SET expiry_told = 3 WHERE state = 'expired';
-- missed slots: what waits for a person, spans in which the clock was not to be trusted, and what caught up
CREATE TABLE missed_card (                     -- a missed slot that a person decides about; its line is never edited
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    automation_id TEXT NOT NULL,
    trigger_id TEXT NOT NULL,
    firing_id TEXT NOT NULL,                   -- the line that says it was missed
    slot INTEGER NOT NULL,
    state TEXT NOT NULL,                       -- pending | executed | dismissed
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',             -- why it was dismissed
    run_id TEXT                                -- what executing it became
) STRICT;
CREATE INDEX missed_card_pending ON missed_card (automation_id) WHERE state = 'pending';
CREATE INDEX missed_card_decided ON missed_card (decided_at) WHERE state <> 'pending';
CREATE TABLE gap (                             -- spans in which slots passed that nobody was there to answer in time
    kind TEXT NOT NULL,                        -- down | sleep | step_forward | step_back | restored
    gap_from INTEGER NOT NULL,                 -- the wall before it
    gap_to INTEGER NOT NULL,                   -- and after it
    worker TEXT NOT NULL,                      -- who noticed
    PRIMARY KEY (gap_to, gap_from, kind)
) STRICT;
ALTER TABLE run ADD COLUMN catchup INTEGER NOT NULL DEFAULT 0;       -- it makes up for a missed slot
ALTER TABLE run ADD COLUMN stale_at INTEGER;                         -- when it is too old to be begun
-- failures: two counters, incidents, alerts, and what a person decided about what failed
ALTER TABLE automation ADD COLUMN schedule_errors INTEGER NOT NULL DEFAULT 0;  -- in a row
ALTER TABLE automation ADD COLUMN failing INTEGER NOT NULL DEFAULT 0;  -- 1: an incident of its runs may stand
-- Runs by hand, and those that a person dismissed, no longer count.
UPDATE automation SET errors_in_a_row = (
    SELECT CASE WHEN count(*) < automation.errors_in_a_row THEN count(*) ELSE automation.errors_in_a_row END FROM run
    WHERE run.automation_id = automation.id AND run.source <> 'manual' AND run.dead_at IS NOT NULL
    AND run.dead_at >= coalesce(automation.last_success_at, 0)) WHERE errors_in_a_row > 0;

CREATE TABLE incident (                        -- a fault that recurs, once
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    automation_id TEXT NOT NULL,               -- the one it is of; of a receiver, that of the latest delivery
    kind TEXT NOT NULL,                        -- execution | schedule | delivery
    route TEXT NOT NULL,                       -- automation and reason, trigger, or the receiver's lane
    signature TEXT NOT NULL,                   -- the error without what changes from time to time
    state TEXT NOT NULL,                       -- open | acknowledged | resolved
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    subject TEXT NOT NULL,                     -- the latest run, trigger or delivery
    error TEXT NOT NULL,                       -- of the latest
    notified_at INTEGER,                       -- the latest alert
    told_at INTEGER,                           -- the latest notice that it is over
    decided_at INTEGER,
    decided_by TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',
    resolved_at INTEGER
) STRICT;
CREATE UNIQUE INDEX incident_standing ON incident (route, signature, kind) WHERE state <> 'resolved';
CREATE INDEX incident_of_automation ON incident (automation_id, kind) WHERE state <> 'resolved';
CREATE INDEX incident_over ON incident (route, signature, kind, resolved_at) WHERE state = 'resolved';

ALTER TABLE delivery ADD COLUMN alert TEXT;    -- of an alert, whose run_id is its incident: opened | paused | recovered | ...
ALTER TABLE delivery ADD COLUMN closed_at INTEGER;                    -- a person decided not to send it again
ALTER TABLE delivery ADD COLUMN closed_by TEXT NOT NULL DEFAULT '';
CREATE INDEX delivery_alert ON delivery (lane, created_at) WHERE alert IS NOT NULL;

CREATE TABLE alert (                           -- what an alert's delivery carries, the same in every try
    delivery_id TEXT NOT NULL PRIMARY KEY,
    automation TEXT NOT NULL,                  -- its name
    timezone TEXT NOT NULL,
    config TEXT NOT NULL,                      -- JSON of the destination's
    body TEXT NOT NULL,                        -- JSON
    cooldown INTEGER NOT NULL,                 -- microseconds: of its incident, when it was sent
    next_routes TEXT NOT NULL                  -- JSON of the routes that are left should this one fail
) STRICT;

CREATE TABLE dead_letter (                     -- dead letters that somebody has decided about
    run_id TEXT NOT NULL PRIMARY KEY,
    decision TEXT NOT NULL,                    -- replayed | dismissed
    replayed_by TEXT,                          -- the run that does the work again
    by TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
