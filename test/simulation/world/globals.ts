/**
 * Replaces what a program can learn from its machine: time, timers and randomness. Everything follows the
 * scheduler while a world is entered, and the real machine otherwise.
 */
import './real.ts'
import type { Cancel } from './scheduler.ts'
import { isSimulating, world } from './world.ts'

type Work = (...values: unknown[]) => void

/** What Node's timers are to the code that holds one. */
class SimulatedTimer {
  readonly #again: () => Cancel
  #cancel: Cancel
  constructor(again: () => Cancel) {
    this.#again = again
    this.#cancel = again()
  }
  clear(): void {
    this.#cancel()
  }
  refresh(): this {
    this.#cancel()
    this.#cancel = this.#again()
    return this
  }
  ref = (): this => this
  unref = (): this => this
  hasRef = (): boolean => true
  close(): this {
    this.#cancel()
    return this
  }
  [Symbol.dispose](): void {
    this.#cancel()
  }
}

/** @param everyMs null for a timer that runs once. */
function timer(work: () => void, afterMs: number, everyMs: number | null): SimulatedTimer {
  const { scheduler } = world()
  const owner = scheduler.owner()
  let isCleared = false
  const made = new SimulatedTimer(() => {
    isCleared = false
    let cancel: Cancel
    const next = (ms: number): void => {
      cancel = scheduler.after(
        ms,
        () => {
          if (everyMs !== null && !isCleared) next(everyMs)
          work()
        },
        owner,
      )
    }
    next(afterMs)
    return () => {
      isCleared = true
      cancel()
    }
  })
  return made
}

export function replaceGlobals(): void {
  const real = {
    setTimeout: globalThis.setTimeout,
    setInterval: globalThis.setInterval,
    setImmediate: globalThis.setImmediate,
    clearTimeout: globalThis.clearTimeout,
    clearInterval: globalThis.clearInterval,
    clearImmediate: globalThis.clearImmediate,
    dateNow: Date.now,
    performanceNow: performance.now.bind(performance),
    random: Math.random,
    getRandomValues: crypto.getRandomValues.bind(crypto),
    randomUUID: crypto.randomUUID.bind(crypto),
  }
  const clear =
    (realClear: (timer: never) => void) =>
    (timer: unknown): void => {
      if (timer instanceof SimulatedTimer) timer.clear()
      else realClear(timer as never)
    }
  const replaced = {
    setTimeout: (work: Work, ms = 1, ...values: unknown[]) =>
      isSimulating()
        ? timer(() => work(...values), Math.max(1, ms), null)
        : real.setTimeout(work, ms, ...values),
    setInterval: (work: Work, ms = 1, ...values: unknown[]) =>
      isSimulating()
        ? timer(() => work(...values), Math.max(1, ms), Math.max(1, ms))
        : real.setInterval(work, ms, ...values),
    setImmediate: (work: Work, ...values: unknown[]) =>
      isSimulating() ? timer(() => work(...values), 0, null) : real.setImmediate(work, ...values),
    clearTimeout: clear(real.clearTimeout),
    clearInterval: clear(real.clearInterval),
    clearImmediate: clear(real.clearImmediate),
  }
  Object.assign(globalThis, replaced)
  Date.now = () => (isSimulating() ? world().scheduler.wallNow() : real.dateNow())
  performance.now = () => (isSimulating() ? world().scheduler.elapsed() : real.performanceNow())
  Math.random = () => (isSimulating() ? world().scheduler.random.next() : real.random())
  crypto.getRandomValues = <T extends ArrayBufferView | null>(array: T): T => {
    if (!isSimulating() || array === null) return real.getRandomValues(array as never) as T
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
    bytes.set(world().scheduler.random.bytes(bytes.length))
    return array
  }
  crypto.randomUUID = () => (isSimulating() ? uuidV4() : real.randomUUID())
  const realTimeout = AbortSignal.timeout.bind(AbortSignal)
  AbortSignal.timeout = (ms) => {
    if (!isSimulating()) return realTimeout(ms)
    const controller = new AbortController()
    setTimeout(() => controller.abort(new DOMException('too slow', 'TimeoutError')), ms)
    return controller.signal
  }
}

/** RFC 9562 §5.4 */
export function uuidV4(): `${string}-${string}-${string}-${string}-${string}` {
  const bytes = world().scheduler.random.bytes(16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = Buffer.from(bytes).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
