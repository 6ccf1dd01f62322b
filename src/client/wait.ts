/** A wait that an AbortSignal can end. */

/** The longest wait that a server can impose between two requests. */
const MAX_WAIT_SECONDS = 60

/** Resolves after this many seconds, at most a minute. @throws the reason of an aborted signal. */
export function wait(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const done = (): void => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }
    const timer = setTimeout(done, Math.min(seconds, MAX_WAIT_SECONDS) * 1000)
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
  })
}
