/** The bounds of a schedule's texts, for the schema, which needs no library of cron. */
export const MAX_CRON_LENGTH = 100
export const MAX_TIME_ZONE_LENGTH = 64
