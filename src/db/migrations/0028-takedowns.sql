-- What the operator has suspended. Running instances look here for what is new.
create table takedown (
  public_id text primary key,
  product text not null,
  reason text not null,            -- the operator's own words; never shown to a buyer
  suspended_at integer not null,
  resumed_at integer,
  change_number integer not null   -- each suspension and resumption has the next number
);
create index takedown_by_change on takedown (change_number);

-- The newest of these numbers. Whoever takes one locks this row until the commit, so they are committed in order.
create table takedown_change (
  id integer primary key,          -- always 1
  change_number integer not null
);
insert into takedown_change (id, change_number) values (1, 0);

alter table whisper add column suspended_at integer;

alter table pulse_monitor add column suspended_at integer;
-- When suspensions of this monitor began and ended, newest first, 13 digits each: its own blind windows.
alter table pulse_monitor add column suspensions text not null default '';
