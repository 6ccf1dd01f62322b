/** What a monitor can be set to, in every plan: for the service, the command line and the tools. */

/** Bounds of `expectedIntervalSeconds` and `graceSeconds`. */
export const INTERVAL_SECONDS = { minimum: 20, maximum: 604_800 }
export const GRACE_SECONDS = { minimum: 60, maximum: 604_800 }

/** How many characters these settings may have. */
export const LENGTHS = { name: 80, description: 240, cron: 100, timeZone: 64 }

/** A job that runs at certain times is late after this, unless its owner says otherwise. */
export const SCHEDULE_GRACE_SECONDS = 900
