-- What an event took of its inbox's storage, so that deleting it gives back exactly that. Null is an
-- event from before this column: it took the bytes of its body.
alter table catch_event add column kept_bytes integer;
-- The headers as they came, a line `name:value` each, without the dropped ones. Null is an event from
-- before this column, whose headers are the JSON in `headers`; for all others that is an empty list.
alter table catch_event add column header_lines blob;
