-- What a destination is told. Positions are in the order of the changes. Kept for a day after its end.
create table alert (
  destination_id text not null,
  position integer not null,
  message_id text not null,
  type text not null,
  occurred_at integer not null,
  replaces integer not null,                 -- 0 | 1; whether an earlier one says nothing beside it
  content text not null,                     -- JSON
  coalesced integer not null,                -- how many earlier ones it stands for
  attempts integer not null,
  attempted_at integer,
  outcome text,                              -- of the last attempt: 2xx | 4xx | 5xx | failed
  done_at integer,                           -- when it was delivered or given up
  primary key (destination_id, position)
);
create index alert_by_end on alert (done_at);
