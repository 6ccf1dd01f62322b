-- The requests that inboxes have stored. No primary key besides the index: rows of all inboxes are appended in the
-- order of arrival, and the bodies stay out of the index's tree.
create table catch_event (
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
create unique index catch_event_by_inbox on catch_event (inbox, sequence);
