-- The requests that inboxes have stored, appended in the order of arrival, and found by one of the two tables below.
-- The id of a deleted row may be given again, because nothing that names it outlives it.
create table catch_event (
  id integer primary key,
  inbox integer not null,
  sequence integer not null,       -- in its inbox, from 1
  salt integer not null,           -- completes the event's UUIDv7
  received_at integer not null,
  access text not null,            -- public | authenticated
  method text not null,
  media_type text,                 -- of the content type, lower case, without parameters
  body_bytes integer not null,
  source_ip text not null,
  ip_location text,                -- JSON
  path text not null,
  query text not null,
  body_sha256 text not null,       -- hex
  kept_bytes integer not null,     -- what it takes of its inbox's storage, and deleting it frees
  header_lines blob not null,      -- as received, a line `name:value` each, without the dropped ones
  body blob not null               -- last, so that nothing is read through it
);

-- Where the rows of an inbox are. An event of many inboxes in turn would dirty a page of this on its own.
create table catch_event_place (
  inbox integer not null,
  sequence integer not null,
  id integer not null,
  primary key (inbox, sequence)
) without rowid;

-- The same in the order of arrival, for rows that are not sorted into catch_event_place yet. A reader looks at
-- all of it, so it stays short.
create table catch_event_recent (
  id integer primary key,
  inbox integer not null,
  sequence integer not null
);
