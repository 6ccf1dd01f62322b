/** Bounds of a whisper that its buyer and the service both know. */

/** The most reads that any plan can sell. */
export const MAX_READS = 402
