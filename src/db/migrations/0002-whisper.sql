-- The bytes of a WHISPER, stored with its order and kept until the quote dies or the last read.
-- bytes: whisper_ciphertext
create table whisper_ciphertext (
  order_id text primary key,
  ciphertext blob not null
);

-- An order whose bytes are not paid yet. Deleted when the quote ends or the order is settled.
create table whisper_reservation (
  order_id text primary key,
  client_network text not null,
  byte_count integer not null
);

-- The sum of the reservations of each client network, and in all. Kept as counters, so that one
-- conditional statement is exact on any engine.
-- hot: whisper_unpaid
create table whisper_unpaid (
  scope text primary key,          -- a client network, or 'all'
  byte_count integer not null
);

-- hot: whisper
create table whisper (
  public_id text primary key,
  order_id text not null unique,
  read_token_hash blob not null,
  reads_left integer not null,
  reveal_at integer,
  created_at integer not null,
  expires_at integer not null
);
create index whisper_by_expiry on whisper (expires_at);
