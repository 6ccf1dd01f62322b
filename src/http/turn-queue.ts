/** Runs at most one piece of work per turn of the event loop, so that requests run in between. */

/** Resolves when it is the caller's turn. Each turn has one caller, in the order of the calls. */
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
