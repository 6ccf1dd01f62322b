-- The requests to an inbox that were refused, by reason. `refusal_count` grows in turns, a few seconds late.
create table catch_refusal (
  public_id text not null,
  reason text not null,
  refusal_count integer not null,
  first_at integer not null,
  last_at integer not null,
  primary key (public_id, reason)
);
