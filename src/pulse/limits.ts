/** The rate limits of PULSE. */
import type { Limit } from '../http/limits.ts'

/** Per monitor. */
export const PINGS: Limit = { name: 'ping', perMinute: 12, burst: 5 }
/** Starts, failures and exit codes of runs, per monitor: two for each ping. */
export const SIGNALS: Limit = { name: 'signal', perMinute: 24, burst: 10 }
/** Reads of shared states and badges, per client. */
export const PUBLIC_STATUS: Limit = { name: 'publicStatus', perMinute: 60, burst: 60 }
