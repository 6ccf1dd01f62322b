/** Limits of a whisper that buyer and service share. */

/** No plan can sell more reads than this. */
export const MAX_READS = 402
