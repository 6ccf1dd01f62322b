/** Which plans can take a draft, and how much content fits. Checked before anything is encrypted or paid. */
import type { Catalog } from '../../client/index.ts'
import { envelopeLength } from '../../protocol/whisper-envelope.ts'
import { bytes, plural } from '../lib/format.ts'
import { lifetimeMs } from '../lib/terms.ts'

export type WhisperPlan = Catalog['products']['whisper']['plans'][number]

/** What is sealed besides the data, and makes it longer. */
export type Sealing = { name?: string; mediaType?: string; hasPassword: boolean }

export type Asked = {
  /** Null while there is no content. */
  size: { dataBytes: number; sealing: Sealing } | null
  readLimit: number | null
  revealAt: Date | null
  /** The time of the service, in Unix milliseconds. */
  now: number
}

/** Why this plan cannot take the draft, or null. */
export function refusalOf(
  { maxCiphertextBytes, readLimit, durationLabel }: WhisperPlan,
  { size, readLimit: reads, revealAt, now }: Asked,
): string | null {
  if (size) {
    const largest = largestContent(maxCiphertextBytes, size.sealing)
    if (size.dataBytes > largest) {
      return `Too small: it holds ${upTo(largest)}, and this is ${sizeOf(size.dataBytes)}.`
    }
  }
  if ((reads ?? 0) > readLimit) return `Maximum ${plural(readLimit, 'read')}.`
  const lifetime = lifetimeMs(durationLabel)
  // As the service compares: the lifetime begins when it is paid, so there is a little less room than this.
  if (lifetime !== null && (revealAt?.getTime() ?? 0) >= now + lifetime) {
    return `Too short: it ends after ${durationLabel}, before the opening time.`
  }
  return null
}

/** The largest content in bytes whose envelope has at most `maxCiphertextBytes`, or 0. */
export function largestContent(maxCiphertextBytes: number, sealing: Sealing): number {
  let fits = 0
  let tooLarge = maxCiphertextBytes + 1
  // The length of an envelope never falls when its content grows, so halving finds the last that fits.
  while (tooLarge - fits > 1) {
    const dataBytes = Math.floor((fits + tooLarge) / 2)
    if (envelopeLength({ ...sealing, dataBytes }) <= maxCiphertextBytes) fits = dataBytes
    else tooLarge = dataBytes
  }
  return fits
}

/** A limit in words, rounded down so that what fits the words fits the limit: `7.8 MiB`. */
export const upTo = (size: number): string => bytes(size, Math.floor)

/** A size in words, rounded up, so that it never reads like a limit that it is above. */
export const sizeOf = (size: number): string => bytes(size, Math.ceil)
