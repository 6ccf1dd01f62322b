/** How long a node may take, in milliseconds. */

export type NodeTimeouts = {
  connectMs: number
  createMs: number
  lookupMs: number
  infoMs: number
  /** How often the node is asked for a sign of life while its stream is silent. */
  probeEveryMs: number
  /** The first and the longest pause before the stream is opened again. */
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
