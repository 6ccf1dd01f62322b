/** The network of a buyer: slow, and it loses requests and answers, until the run becomes calm. */
import type { Owner, Scheduler } from '../world/scheduler.ts'

export type Weather = {
  isCalm: boolean
  lossRate: number
  mostMs: number
  /** How often a node takes long to look at a payment. */
  busyRate: number
  /** How often a payment is held on its way for longer than its invoice lasts. */
  stuckRate: number
}

/**
 * Calls the other side for the process that runs now. What has been sent arrives, though the caller dies.
 * @param work runs on the other side, and may answer late.
 */
export function callOver<T>(
  scheduler: Scheduler,
  weather: Weather,
  { work, signal }: { work: () => T | Promise<T>; signal?: AbortSignal | null | undefined },
): Promise<T> {
  const { random } = scheduler
  const caller: Owner | null = scheduler.owner()
  const isLost = (): boolean => !weather.isCalm && random.chance(weather.lossRate)
  const delay = (): number => random.int(1, weather.isCalm ? 50 : weather.mostMs)
  return new Promise((resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason))
    if (signal?.aborted) return reject(signal.reason)
    const fail = (): void =>
      void scheduler.after(delay(), () => reject(new TypeError('fetch failed')), caller)
    if (isLost()) return fail()
    const answer = async (): Promise<void> => {
      const isCut = isLost()
      // A connection may break while the other side is still at work.
      if (isCut && random.chance(0.5)) fail()
      const value = await work()
      if (isCut) fail()
      else scheduler.after(delay(), () => resolve(value), caller)
    }
    scheduler.after(delay(), () => void answer().catch(fail), null)
  })
}
