/** A wait that news end. News that come while nobody waits are not lost: they end the next wait at once. */

export type News = {
  /** Waits for news, but at most this long. */
  wait(ms: number): Promise<void>
  /** Ends the current or the next wait. */
  wake(): void
}

/** @param isOpen whether there is anything to wait for. */
export function createNews(isOpen: () => boolean): News {
  let resume: (() => void) | null = null
  let isWoken = false
  return {
    wait(ms) {
      return new Promise((resolve) => {
        if (isWoken || !isOpen()) {
          isWoken = false
          return resolve()
        }
        const timer = setTimeout(done, ms)
        function done(): void {
          clearTimeout(timer)
          resume = null
          isWoken = false
          resolve()
        }
        resume = done
      })
    },
    wake() {
      isWoken = true
      resume?.()
    },
  }
}
