-- Time alone changes a monitor: it becomes late, or is about to expire. Whoever looks for that finds it by this
-- time, which a ping does not move: a look that comes too early moves it.
alter table pulse_monitor add column check_at integer;
create index pulse_monitor_by_check on pulse_monitor (check_at) where check_at is not null;

-- Counts the changes of a monitor, pings that change nothing but the counter and the times left out.
alter table pulse_monitor add column revision integer not null default 0;
-- The beginning of its open silence.
alter table pulse_monitor add column late_since integer;
-- 1 once nothing, not even a refused ping, has come for an interval and grace of that silence.
alter table pulse_monitor add column is_silent integer not null default 0;
-- When interval or grace were last changed: the deadline counts from here, or from the last ping after it.
alter table pulse_monitor add column rescheduled_at integer not null default 0;
-- The first failed run since the last good one, and the newest one's code, or null where it gave none.
alter table pulse_monitor add column failed_at integer;
alter table pulse_monitor add column exit_code integer;
-- The last time that a ping with the right token was refused.
alter table pulse_monitor add column alive_at integer;
alter table pulse_monitor add column is_expiry_told integer not null default 0;
-- JSON: the runs that have begun, [[rid, startedAt], …], oldest first, or nothing.
alter table pulse_monitor add column open_runs text not null default '';
-- JSON: the last run that has ended, or nothing.
alter table pulse_monitor add column last_run text not null default '';

-- Everything is due for a first look. The state of an exhausted monitor now begins in this column, too.
update pulse_monitor set check_at = created_at where accepted_heartbeat_count < heartbeat_limit;
update pulse_monitor set state_since = last_ping_at
  where accepted_heartbeat_count >= heartbeat_limit and last_ping_at is not null;

-- When a monitor was late, from the deadline that passed to what ended it.
create table pulse_silence (
  public_id text not null,
  began_at integer not null,
  ended_at integer,                          -- null while it lasts
  ended_by text,                             -- ping | settings
  primary key (public_id, began_at)
);
