/** Stands for `node:timers/promises` in the service. */
export { scheduler, setInterval } from 'node:timers/promises'

const abortError = (): Error =>
  Object.assign(new Error('The operation was aborted'), { name: 'AbortError', code: 'ABORT_ERR' })

export function setTimeout<T>(
  ms?: number,
  value?: T,
  { signal }: { signal?: AbortSignal; ref?: boolean } = {},
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError())
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(abortError())
    }
    const timer = globalThis.setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve(value)
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

export const setImmediate = <T>(value?: T): Promise<T | undefined> =>
  new Promise((resolve) => void globalThis.setImmediate(() => resolve(value)))
