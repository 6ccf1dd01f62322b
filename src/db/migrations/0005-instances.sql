-- Work that instances take turns at, such as a purge: the instance that moves the time does the work.
create table lease (
  name text primary key,
  holder text not null,
  held_until integer not null
);

-- Rate limits that several instances share. The columns are those of rate-limiter-flexible; keys
-- are keyed hashes.
-- hot: rate_limit
create table rate_limit (
  key text primary key,
  points integer not null,
  expire integer
);
create index rate_limit_by_expiry on rate_limit (expire);
