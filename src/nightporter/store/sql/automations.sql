-- Automations, their versions and triggers, as operations and definitions change them.

-- name: automation_insert
INSERT INTO automation (id, workspace, owner, name, state, state_reason, state_by, state_at, truth, path, error,
                        version, definition_hash, concurrent, cooldown, expires, renewed_at, created_at, updated_at)
VALUES (:id, :workspace, :owner, :name, :state, :state_reason, :by, :now, :truth, :path, :error,
        :version, :definition_hash, :concurrent, :cooldown, :expires, :now, :now, :now);

-- name: automation_version_insert
INSERT INTO automation_version (automation_id, version, definition, definition_hash, created_at, created_by)
VALUES (:automation_id, :version, :definition, :definition_hash, :now, :by);

-- name: automation_redefine
UPDATE automation SET workspace = :workspace, name = :name, owner = :owner, version = :version,
       definition_hash = :definition_hash, truth = :truth, path = :path, concurrent = :concurrent, cooldown = :cooldown,
       expires = :expires, renewed_at = coalesce(:renewed_at, renewed_at), updated_at = :now, error = '',
       expiry_told = CASE WHEN expires IS NOT DISTINCT FROM :expires THEN expiry_told ELSE 0 END
WHERE id = :id;

-- name: automation_enable  proposed | paused | auto_paused | expired | completed -> active
UPDATE automation SET state = 'active', state_reason = '', state_by = :by, state_at = :now, state_until = NULL,
       errors_in_a_row = 0, schedule_errors = 0
WHERE id = :id AND state IN ('proposed', 'paused', 'auto_paused', 'expired', 'completed');

-- name: automation_pause  active | auto_paused | config_error -> paused
UPDATE automation SET state = 'paused', state_reason = :reason, state_by = :by, state_at = :now, state_until = :until
WHERE id = :id AND state IN ('active', 'auto_paused', 'config_error');

-- name: automation_break  active | paused | auto_paused -> config_error
-- What it was before is kept whole, so that mending gives it back.
UPDATE automation SET state_before = :before, state = 'config_error', state_reason = :reason, state_by = 'desk',
       state_at = :now, state_until = NULL, error = :error, path = :path
WHERE id = :id AND state IN ('active', 'paused', 'auto_paused');

-- name: automation_break_again
-- A broken one is broken otherwise; one that is proposed, expired or completed stays so, and shows the error.
UPDATE automation SET error = :error, path = :path,
       state_reason = CASE state WHEN 'config_error' THEN :reason ELSE state_reason END
WHERE id = :id AND state NOT IN ('active', 'paused', 'auto_paused', 'removed');

-- name: automation_mend  config_error -> active
UPDATE automation SET state = 'active', state_reason = '', state_by = 'desk', state_at = :now, error = ''
WHERE id = :id AND state = 'config_error';

-- name: automation_forget_error
UPDATE automation SET error = '' WHERE id = :id;

-- name: automation_expire  active -> expired
UPDATE automation SET state = 'expired', state_reason = 'its expiry date has passed', state_by = 'desk',
       state_at = :now
WHERE id = :id AND state = 'active';

-- name: automation_renew
UPDATE automation SET expires = :expires, renewed_at = :now, expiry_told = 0 WHERE id = :id;

-- name: automation_ending
-- What was said of the end of those that end soon.
SELECT id, expires, renewed_at, expiry_told FROM automation
WHERE state = 'active' AND expires IS NOT NULL AND expires > :now AND expires <= :until ORDER BY expires, id;

-- name: automation_expiry_facts
SELECT expires, renewed_at, expiry_told FROM automation WHERE id = :id AND expires IS NOT NULL;

-- name: automation_expiry_tell
UPDATE automation SET expiry_told = :told WHERE id = :id AND expires = :expires AND expiry_told < :told;

-- name: automation_remove  proposed | active | paused | auto_paused | config_error | expired | completed -> removed
UPDATE automation SET state = 'removed', state_reason = :reason, state_by = :by, state_at = :now
WHERE id = :id AND state <> 'removed';

-- name: automation_get
SELECT id, workspace, owner, name, state, state_reason, state_by, state_at, state_until, state_before, truth, path,
       error, version, definition_hash, created_at, updated_at, last_run_id, last_outcome, last_success_at,
       last_failure_at, errors_in_a_row
FROM automation WHERE id = :id @lock(automation);

-- name: automation_in_force
-- The definition in force; not locked.
SELECT v.definition FROM automation a
JOIN automation_version v ON v.automation_id = a.id AND v.version = a.version WHERE a.id = :id;

-- name: automation_in_force_of
-- The same of several.
SELECT a.id, v.definition FROM @rows(id text) AS r JOIN automation a ON a.id = r.id
JOIN automation_version v ON v.automation_id = a.id AND v.version = a.version;

-- name: automation_in_force_all
-- The definitions in force of all that were not removed.
SELECT a.id, a.name, v.definition FROM automation a
JOIN automation_version v ON v.automation_id = a.id AND v.version = a.version WHERE a.state <> 'removed' ORDER BY a.id;

-- name: automation_find
SELECT id FROM automation WHERE name = :name AND state <> 'removed' ORDER BY workspace, id;

-- name: automation_find_prefix
SELECT id FROM automation WHERE (id LIKE :prefix OR name LIKE :prefix) AND state <> 'removed' ORDER BY name, id LIMIT 20;

-- name: names_lock
-- From here to the end of the transaction nobody else gives an automation a name. Nothing to do here: one writes at a
-- time.
SELECT 1;

-- name: automation_by_name
SELECT id FROM automation WHERE workspace = :workspace AND name = :name AND state <> 'removed';

-- name: automation_namesakes
-- How many there were of that name, removed ones too.
SELECT count(*) FROM automation WHERE workspace = :workspace AND name = :name;

-- name: automation_at_path
SELECT id, name FROM automation WHERE truth = 'file' AND path = :path AND state <> 'removed' ORDER BY id;

-- name: automation_of_file
SELECT id, name, state, path, workspace FROM automation WHERE truth = 'file' AND state <> 'removed' ORDER BY id;

-- name: automation_of_program
SELECT id, workspace, name, state FROM automation WHERE truth = 'code' AND path = :path AND state <> 'removed' ORDER BY id;

-- name: automation_unpause_runs
-- Queued runs that a pause held back.
UPDATE run SET blocked = NULL WHERE automation_id = :automation_id AND state = 'queued' AND blocked = 'paused';

-- name: run_queued_of
SELECT id FROM run WHERE state IN ('queued', 'running', 'held', 'lost') AND state IN ('queued', 'held')
  AND automation_id = :automation_id ORDER BY id;

-- name: run_running_of
SELECT id FROM run WHERE state IN ('queued', 'running', 'held', 'lost') AND state = 'running'
  AND automation_id = :automation_id ORDER BY id;

-- name: run_review_of
SELECT id FROM run WHERE automation_id = :automation_id AND state = 'review' ORDER BY id;

-- name: run_version
-- The version of its automation's definition that each run was admitted with.
SELECT run.id, run.automation_id, run.version FROM @rows(id text) AS r JOIN run ON run.id = r.id;

-- name: trigger_insert
INSERT INTO trigger (id, automation_id, name, kind, enabled, policy, schedule, version, next_fire_at, tzdata, created_at)
VALUES (:id, :automation_id, :name, :kind, :enabled, :policy, :schedule, :version, :next_fire_at, :tzdata, :now);

-- name: trigger_redefine
-- Everything but the slot, which only `arm`, `advance` and `disarm` move.
UPDATE trigger SET kind = :kind, enabled = :enabled, policy = :policy, removed_at = :removed_at, error = :error
WHERE id = :id;

-- name: triggers_of
SELECT id, name, kind, enabled, policy, schedule, version, next_fire_at, tzdata, created_at, removed_at, error,
       last_fired_at, wall,
       (SELECT max(v.valid_from) FROM trigger_version v WHERE v.trigger_id = trigger.id AND v.valid_to IS NULL)
FROM trigger WHERE automation_id = :automation_id ORDER BY id;

-- name: definition_change_count
SELECT count(*) FROM definition_change WHERE automation_id = :automation_id;

-- name: definition_change_write
INSERT INTO definition_change (id, at, actor, workspace, automation_id, verb, version, detail)
VALUES (:id, :now, :actor, :workspace, :automation_id, :verb, :version, :detail);

-- name: automation_expiry
SELECT expires FROM automation WHERE id = :id;

-- name: pause_open_now
SELECT paused_from, reason FROM pause WHERE automation_id = :automation_id AND paused_to IS NULL;

-- name: file_refused
-- Definition files that are not taken: the name of theirs belongs to another, for one.
SELECT key, error FROM quarantine WHERE subject = 'file' ORDER BY key;
