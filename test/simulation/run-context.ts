/** What every actor of a run is given. */
import type { Ledger } from './ledger.ts'
import type { Settings } from './settings.ts'
import type { Weather } from './weather.ts'
import type { Answer, Ask, Service } from './world/service.ts'
import type { World } from './world/world.ts'

export type Run = {
  world: World
  service: Service
  ledger: Ledger
  /** What the operator has set. */
  settings: Settings
  weather: Weather
  /** Buyers who have what they bought, by its payment hash. They come back when a restored backup took it away. */
  buyers: Map<string, () => Promise<void>>
  /** What the operator is at: commands on orders, and a backup that is to be restored. */
  operator: { isMending: boolean; isRestoring: boolean }
  /** What must end before the run does. */
  errands: Promise<void>[]
  /** False once the faults are over, and everything must come to its end, or once no client is left. */
  isStormy(): boolean
  /** True once the faults are over, and the clock is right again. */
  isCalm(): boolean
  /** Resolves when this happens next. */
  exchanged(what: Exchange): Promise<void>
  /** Asks, and notes the answer. */
  ask(who: string, ask: Ask): Promise<Answer | null>
}

/** A request leaves, an answer has come, or has come while not all is on the disk. */
export type Exchange = 'request' | 'answer' | 'early'

/** The phrase of an error's body. */
export function phraseOf({ text }: Answer): string {
  try {
    return String((JSON.parse(text) as { error?: string }).error ?? '')
  } catch {
    return ''
  }
}
