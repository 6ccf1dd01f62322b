/** The rate limits of PULSE. */
import type { Limit } from '../http/limits.ts'

/** Per monitor. */
export const PINGS: Limit = { name: 'ping', perMinute: 12, burst: 5, isSharedAsync: true }
/** Starts, failures and exit codes of runs, per monitor: two for each ping. */
export const SIGNALS: Limit = { name: 'signal', perMinute: 24, burst: 10, isSharedAsync: true }
/** Tests of alert destinations, per monitor: 5 an hour. */
export const ALERT_TESTS: Limit = { name: 'alertTest', perMinute: 0.083, burst: 5 }
/** The same per host and path, over all monitors: 10 a day. A stranger's address is no toy. */
export const ALERT_TESTS_PER_TARGET: Limit = {
  ...{ name: 'alertTestTarget', perMinute: 0.007, burst: 10 },
}
/** Reads of shared states and badges, per client. */
export const PUBLIC_STATUS: Limit = { name: 'publicStatus', perMinute: 60, burst: 60 }
