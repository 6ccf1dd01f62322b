/** What the simulation needs of the real machine, taken before it is replaced. */
export const realTurn = globalThis.setImmediate
export const realNow = performance.now.bind(performance)
