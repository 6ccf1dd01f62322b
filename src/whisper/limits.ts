/** The rate limits of WHISPER. */
import type { Limit } from '../http/limits.ts'

/** Per whisper. */
export const READS: Limit = { name: 'read', perMinute: 30, burst: 30 }
