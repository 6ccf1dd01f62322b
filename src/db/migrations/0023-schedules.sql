-- A schedule of cron, which takes the place of interval and grace while it is set. Empty: there is none.
alter table pulse_monitor add column schedule_cron text not null default '';
alter table pulse_monitor add column schedule_time_zone text not null default '';
alter table pulse_monitor add column schedule_grace_seconds integer not null default 0;
