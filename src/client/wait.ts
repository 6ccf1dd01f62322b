/** A wait that an AbortSignal can end. */

/** The longest wait that a server can impose between two requests. */
const MAX_WAIT_SECONDS = 60

/** Aborted by the signal, or when this time, in milliseconds, is over. */
export function within({
  signal,
  timeoutMs,
}: {
  signal?: AbortSignal | undefined
  timeoutMs?: number | undefined
}): AbortSignal | undefined {
  if (timeoutMs === undefined) return signal
  const over = AbortSignal.timeout(Math.min(Math.max(Math.ceil(timeoutMs), 0), MAX_TIMER_MS))
  return signal ? AbortSignal.any([signal, over]) : over
}

/** The longest time of a timer, about 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

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
