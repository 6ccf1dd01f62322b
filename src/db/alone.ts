/**
 * Lets one work have a queue to itself.
 * @param isBusy whether other work is under way, whose end calls `wake`
 * @param goOn begins what had to wait
 */
export function createAlone({ isBusy, goOn }: { isBusy: () => boolean; goOn: () => void }) {
  const waiting: (() => void)[] = []
  const freed = (): Promise<void> => new Promise((resume) => waiting.push(resume))
  let isTaken = false

  function wake(): void {
    for (const resume of waiting.splice(0)) resume()
  }

  return {
    wake,
    /** Nothing else may begin. */
    isTaken: (): boolean => isTaken,
    async run<T>(work: () => Promise<T>): Promise<T> {
      // Checked and set without an await between: of two that wake together, one continues.
      while (isTaken || isBusy()) await freed()
      isTaken = true
      try {
        return await work()
      } finally {
        isTaken = false
        wake()
        goOn()
      }
    },
    /** Resolves when the queue is empty. */
    async idle(isEmpty: () => boolean): Promise<void> {
      while (isTaken || isBusy() || !isEmpty()) await freed()
    },
  }
}
