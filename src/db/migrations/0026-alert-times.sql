-- An alert that must not tell by its time when something happened is told some time later.
alter table alert add column not_before integer not null default 0;
