-- Who bought a WHISPER with a receipt can ask when it was read, until a day after its end. The bytes and the
-- reads left are gone by then, so this is a table of its own.
-- hot: whisper_receipt
create table whisper_receipt (
  public_id text primary key,
  receipt_token_hash blob not null,
  read_limit integer not null,
  reads_spent integer not null,
  reads text not null,             -- the minutes of the reads, newest first, 13 digits each
  reveal_at integer,
  created_at integer not null,
  expires_at integer not null,
  ended_at integer not null,       -- when it is over: expires_at, unless the last read or its owner ends it before
  was_destroyed integer not null
);
create index whisper_receipt_by_end on whisper_receipt (ended_at);

-- Whether a read is noted. A WHISPER without a receipt costs nothing more to read.
alter table whisper add column has_receipt integer not null default 0;
