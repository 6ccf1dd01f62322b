/** Monitors for tests of switches. */
import { newMonitor } from '../support/pulse-monitor.ts'

export const DAY = 24 * 60 * 60_000
/** When it is in these tests. */
export const T = Date.UTC(2026, 0, 2, 3, 4)
export const MONITOR = 'pulse_0cLz3H5jW9NfXb2mQx7RkT'
export const OTHER = 'pulse_1cLz3H5jW9NfXb2mQx7RkT'

export const aMonitor = (publicId: string, expiresAt: number) =>
  newMonitor({ publicId, expiresAt, createdAt: T - DAY, checkAt: T })
