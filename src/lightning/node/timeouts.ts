/** How long a node may take, in milliseconds. */

export type NodeTimeouts = {
  connectMs: number
  createMs: number
  lookupMs: number
  infoMs: number
  /** How often a silent stream is checked for a node that hangs. */
  probeEveryMs: number
  /** The first and the longest pause before a stream is opened again. */
  retryFirstMs: number
  retryMaxMs: number
}

export const NODE_TIMEOUTS: NodeTimeouts = {
  connectMs: 5_000,
  createMs: 10_000,
  lookupMs: 5_000,
  infoMs: 5_000,
  probeEveryMs: 30_000,
  retryFirstMs: 250,
  retryMaxMs: 15_000,
}
