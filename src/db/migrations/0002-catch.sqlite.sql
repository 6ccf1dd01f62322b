-- The tables of CATCH on SQLite, which writes whole pages: what an event changes is kept narrow and together.
-- `catch_inbox` and `catch_event` are views of it, which can be changed like tables.

-- A number is never given twice, because events name their inbox by it.
create table catch_inbox_facts (
  number integer primary key autoincrement,
  public_id text not null unique,
  plan_id text not null,
  owner_token_hash blob not null,
  ingest_token_hash blob not null,
  max_bytes_per_request integer not null,
  created_at integer not null
);
-- What each event changes, and what decides whether it may.
create table catch_inbox_use (
  number integer primary key,
  accepted_request_count integer not null,
  stored_bytes integer not null,
  last_sequence integer not null,
  request_limit integer not null,
  storage_limit_bytes integer not null,
  expires_at integer not null,
  suspended_at integer,
  destroyed_at integer
);
create index catch_inbox_by_expiry on catch_inbox_use (expires_at);
create index catch_inbox_destroyed on catch_inbox_use (destroyed_at) where destroyed_at is not null;

create view catch_inbox as
  select public_id, plan_id, owner_token_hash, ingest_token_hash, request_limit, storage_limit_bytes,
    max_bytes_per_request, accepted_request_count, stored_bytes, last_sequence, created_at, expires_at,
    suspended_at, destroyed_at
  from catch_inbox_facts join catch_inbox_use using (number);
create trigger catch_inbox_insert instead of insert on catch_inbox begin
  insert into catch_inbox_facts
      (public_id, plan_id, owner_token_hash, ingest_token_hash, max_bytes_per_request, created_at)
    values (new.public_id, new.plan_id, new.owner_token_hash, new.ingest_token_hash,
      new.max_bytes_per_request, new.created_at)
  ; insert into catch_inbox_use
    select number, new.accepted_request_count, new.stored_bytes, new.last_sequence, new.request_limit,
      new.storage_limit_bytes, new.expires_at, new.suspended_at, new.destroyed_at
    from catch_inbox_facts where public_id = new.public_id
; end;
create trigger catch_inbox_update instead of update on catch_inbox begin
  update catch_inbox_use set stored_bytes = new.stored_bytes, last_sequence = new.last_sequence,
      request_limit = new.request_limit, storage_limit_bytes = new.storage_limit_bytes,
      expires_at = new.expires_at, suspended_at = new.suspended_at, destroyed_at = new.destroyed_at
    where number = (select number from catch_inbox_facts where public_id = old.public_id)
  ; update catch_inbox_facts set public_id = new.public_id, plan_id = new.plan_id,
      owner_token_hash = new.owner_token_hash, ingest_token_hash = new.ingest_token_hash,
      max_bytes_per_request = new.max_bytes_per_request, created_at = new.created_at
    where public_id = old.public_id
; end;
create trigger catch_inbox_delete instead of delete on catch_inbox begin
  delete from catch_inbox_use
    where number = (select number from catch_inbox_facts where public_id = old.public_id)
  ; delete from catch_inbox_facts where public_id = old.public_id
; end;

-- Rows are appended in the order of arrival, and found by one of the two tables below. The id of a deleted row may
-- be given again, because nothing that names it outlives it.
create table catch_event_row (
  id integer primary key,
  inbox integer not null,
  sequence integer not null,
  is_recent integer not null,      -- 1: it is entered in catch_event_recent first
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
  headers text not null,           -- an empty list
  body_sha256 text not null,       -- hex
  kept_bytes integer,
  header_lines blob,
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
create trigger catch_event_row_recent after insert on catch_event_row when new.is_recent = 1 begin
  insert into catch_event_recent (id, inbox, sequence) values (new.id, new.inbox, new.sequence)
; end;
create trigger catch_event_row_place after insert on catch_event_row when new.is_recent = 0 begin
  insert into catch_event_place (inbox, sequence, id) values (new.inbox, new.sequence, new.id)
; end;
create trigger catch_event_row_delete after delete on catch_event_row begin
  delete from catch_event_recent where id = old.id
  ; delete from catch_event_place where inbox = old.inbox and sequence = old.sequence
; end;

-- `cross join` keeps this order: the inbox, its places, their rows.
create view catch_event as
  select public_id, place.sequence as sequence, salt, received_at, access, method, media_type, body_bytes,
    source_ip, ip_location, path, query, content_type, headers, body_sha256, body, kept_bytes, header_lines
  from catch_inbox_facts
    cross join catch_event_place as place on place.inbox = number
    cross join catch_event_row as event on event.id = place.id
  union all
  select public_id, recent.sequence, salt, received_at, access, method, media_type, body_bytes,
    source_ip, ip_location, path, query, content_type, headers, body_sha256, body, kept_bytes, header_lines
  from catch_inbox_facts
    cross join catch_event_recent as recent on recent.inbox = number
    cross join catch_event_row as event on event.id = recent.id;
create trigger catch_event_insert instead of insert on catch_event begin
  insert into catch_event_row
      (inbox, sequence, is_recent, salt, received_at, access, method, media_type, body_bytes, source_ip,
       ip_location, path, query, content_type, headers, body_sha256, body, kept_bytes, header_lines)
    select number, new.sequence, 0, new.salt, new.received_at, new.access, new.method, new.media_type,
      new.body_bytes, new.source_ip, new.ip_location, new.path, new.query, new.content_type, new.headers,
      new.body_sha256, new.body, new.kept_bytes, new.header_lines
    from catch_inbox_facts where public_id = new.public_id
; end;
create trigger catch_event_update instead of update on catch_event begin
  update catch_event_row set salt = new.salt, received_at = new.received_at, access = new.access,
      method = new.method, media_type = new.media_type, body_bytes = new.body_bytes,
      source_ip = new.source_ip, ip_location = new.ip_location, path = new.path, query = new.query,
      content_type = new.content_type, headers = new.headers, body_sha256 = new.body_sha256,
      body = new.body, kept_bytes = new.kept_bytes, header_lines = new.header_lines
    where id in (
      select id from catch_inbox_facts join catch_event_place on inbox = number
        where public_id = old.public_id and sequence = old.sequence
      union all
      select id from catch_inbox_facts join catch_event_recent on inbox = number
        where public_id = old.public_id and sequence = old.sequence)
; end;
create trigger catch_event_delete instead of delete on catch_event begin
  delete from catch_event_row where id in (
      select id from catch_inbox_facts join catch_event_place on inbox = number
        where public_id = old.public_id and sequence = old.sequence
      union all
      select id from catch_inbox_facts join catch_event_recent on inbox = number
        where public_id = old.public_id and sequence = old.sequence)
; end;
