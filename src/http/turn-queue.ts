/** Runs at most one piece of work in each turn of the event loop, so that requests come in between. */

/** Resolves when it is the caller's turn: one caller a turn, first come, first served. */
export type WaitTurn = () => Promise<void>

export function createTurnQueue(): WaitTurn {
  const queue: (() => void)[] = []
  let isTaken = false

  function next(): void {
    const resume = queue.shift()
    isTaken = resume !== undefined
    if (!resume) return
    setImmediate(next)
    resume()
  }

  return async () => {
    if (isTaken) return new Promise((resolve) => queue.push(resolve))
    isTaken = true
    setImmediate(next)
  }
}
