/** Which plans of WHISPER can take a draft. Checked before anything is encrypted or paid. */
import type { Catalog } from '../../client/index.ts'
import { count } from '../format.ts'
import type { DraftForm } from './draft.ts'
import { lifetimeMs } from './lifetime.ts'
import { largestContent, sizeOf, upTo } from './sizes.ts'

export type WhisperPlan = Catalog['products']['whisper']['plans'][number]

type Asked = Pick<DraftForm, 'size' | 'readLimit' | 'revealAt'> & {
  /** The time of the service, in Unix milliseconds. */
  now: number
}

/** Why this plan cannot take the draft, or null. */
export function refusalOf(
  { maxCiphertextBytes, readLimit, durationLabel }: WhisperPlan,
  asked: Asked,
): string | null {
  const size = asked.size()
  if (size) {
    const largest = largestContent(maxCiphertextBytes, size.sealing)
    if (size.dataBytes > largest) {
      return `Too small: it holds up to ${upTo(largest)}, and this is ${sizeOf(size.dataBytes)}.`
    }
  }
  if ((asked.readLimit() ?? 0) > readLimit) return `Allows only ${count(readLimit)} reads.`
  const lifetime = lifetimeMs(durationLabel)
  const opensAt = asked.revealAt()?.getTime() ?? 0
  // As the service compares: the lifetime begins when it is paid, so there is a little less room than this.
  if (lifetime !== null && opensAt >= asked.now + lifetime) {
    return `Too short: it ends after ${durationLabel}, before the opening time.`
  }
  return null
}

/** The largest content in bytes that any plan on sale takes, without a name or a password. */
export function largestFor(plans: readonly WhisperPlan[]): number {
  const limits = plans.filter(({ available }) => available).map((plan) => plan.maxCiphertextBytes)
  return limits.length === 0 ? 0 : largestContent(Math.max(...limits), { hasPassword: false })
}
