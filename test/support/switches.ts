/** Monitors for tests of switches. */
import { insertMonitor } from '../../src/pulse/store.ts'

export const DAY = 24 * 60 * 60_000
/** When it is in these tests. */
export const T = Date.UTC(2026, 0, 2, 3, 4)
export const MONITOR = 'pulse_0cLz3H5jW9NfXb2mQx7RkT'
export const OTHER = 'pulse_1cLz3H5jW9NfXb2mQx7RkT'

export const aMonitor = (publicId: string, expiresAt: number) =>
  insertMonitor({
    publicId,
    publicStatusId: `status of ${publicId}`,
    planId: 'standard',
    ownerTokenHash: new Uint8Array(32),
    pingTokenHash: new Uint8Array(32),
    heartbeatLimit: 100,
    minimumGraceSeconds: 60,
    expectedIntervalSeconds: 60,
    graceSeconds: 60,
    createdAt: T - DAY,
    expiresAt,
    checkAt: T,
  })
