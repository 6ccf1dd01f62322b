-- The tables of CATCH on PostgreSQL.

-- hot: catch_inbox
create table catch_inbox (
  public_id text primary key,
  plan_id text not null,
  owner_token_hash blob not null,
  ingest_token_hash blob not null,
  request_limit integer not null,
  storage_limit_bytes integer not null,
  max_bytes_per_request integer not null,
  accepted_request_count integer not null,
  stored_bytes integer not null,
  last_sequence integer not null,
  created_at integer not null,
  expires_at integer not null,
  suspended_at integer,
  destroyed_at integer
);
create index catch_inbox_by_expiry on catch_inbox (expires_at);
create index catch_inbox_destroyed on catch_inbox (destroyed_at) where destroyed_at is not null;

-- No primary key besides the index: rows of all inboxes are appended in the order of arrival, and the
-- bodies stay out of the index's tree. `salt` completes the event's UUIDv7.
-- bytes: catch_event
create table catch_event (
  public_id text not null,
  sequence integer not null,
  salt integer not null,
  received_at integer not null,
  access text not null,            -- public | authenticated
  method text not null,
  media_type text,                 -- of the content type, lower case, without parameters
  body_bytes integer not null,
  source_ip text not null,
  ip_location text,                -- JSON
  path text not null,
  query text not null,
  content_type text,
  headers text not null,           -- JSON array of {name, value}
  body_sha256 text not null,       -- hex
  body blob not null,
  -- The bytes that an event takes of its inbox's storage, which deleting it frees.
  kept_bytes integer,
  -- The headers as received, a line `name:value` each, without the dropped ones.
  header_lines blob
);
create unique index catch_event_by_inbox on catch_event (public_id, sequence);
