/** Waiting that an AbortSignal ends. */

/**
 * The result of `work`, or a rejection as soon as `signal` aborts. For work that ignores the signal or reacts
 * late: the work continues, but the caller stops waiting.
 */
export function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    const done = () => signal.removeEventListener('abort', abort)
    work.then(resolve, reject).finally(done)
  })
}
