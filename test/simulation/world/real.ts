/** What the simulation needs of the real machine, taken before it is replaced. */
export const realTurn = globalThis.setImmediate
