/** How much content fits into a plan of WHISPER, whose limit is in encrypted bytes. */
import { envelopeLength } from '../../protocol/whisper-envelope.ts'

/** What is sealed besides the data, and makes it longer. */
export type Sealing = { name?: string; mediaType?: string; hasPassword: boolean }

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
export const upTo = (bytes: number): string => inUnits(bytes, Math.floor)

/** A size in words, rounded up, so that it never reads like a limit that it is above. */
export const sizeOf = (bytes: number): string => inUnits(bytes, Math.ceil)

function inUnits(bytes: number, round: (value: number) => number): string {
  if (bytes < 1024) return `${bytes} B`
  const [unit, size] = bytes < 1024 ** 2 ? ['KiB', 1024] : ['MiB', 1024 ** 2]
  return `${round((10 * bytes) / (size as number)) / 10} ${unit}`
}
