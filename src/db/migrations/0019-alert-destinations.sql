-- Where the owner of something is told of what happens to it. The rows of an owner are in one unit with it.
-- hot: alert_destination
create table alert_destination (
  destination_id text primary key,
  owner_id text not null,                    -- such as the id of a monitor
  place integer not null,                    -- 0 and up; which of the owner's it is
  format text not null,                      -- standard | slack | discord | ntfy | inbox
  host text not null,                        -- host:port of the URL, or the id of the inbox
  sealed_target blob not null,               -- the URL, or the id of the inbox, encrypted
  sealed_secret blob not null,               -- what signs, encrypted
  sealed_old_secret blob,                    -- what signs too, until old_secret_until
  old_secret_until integer,
  state text not null,                       -- untested | active | gone
  created_at integer not null,
  last_position integer not null,            -- of the newest alert
  done_position integer not null,            -- all up to this one were delivered or given up
  attempts integer not null,                 -- how often the alert whose turn it is was tried
  due_at integer,                            -- when it is tried next; null while nothing waits
  holder text not null,                      -- the instance that is trying it
  held_until integer not null,
  not_before integer not null,               -- no other alert before that
  day_started_at integer not null,           -- the window of the daily limit
  day_count integer not null,
  unique (owner_id, place)
);
create index alert_destination_by_due on alert_destination (due_at);
