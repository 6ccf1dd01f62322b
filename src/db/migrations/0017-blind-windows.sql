-- Every few seconds a living instance moves this time. All instances count as one: a gap between two times is a
-- time in which nobody could receive a ping.
create table pulse_beat (
  id integer primary key,                    -- always 1
  beat_at integer not null
);

-- A service that is updated was away since the last time that its clock was stored.
insert into pulse_beat (id, beat_at)
  select 1, cast(value as integer) from meta where name = 'clock_seen_at';

-- The times in which no ping, or not every ping, could reach the service.
create table pulse_blind_window (
  began_at integer primary key,
  ended_at integer not null,
  cause text not null                        -- gap | step | outside
);
create index pulse_blind_window_by_end on pulse_blind_window (ended_at);
