/** A new secret: what it has and asks for, and which plans can take it. Checked before anything is encrypted or paid. */
import { signal } from '@preact/signals'
import type { Catalog } from '../../client/index.ts'
import { utf8 } from '../../lib/bytes.ts'
import { envelopeLength, isMediaType, safeName } from '../../protocol/whisper-envelope.ts'
import { bytes, plural } from '../lib/format.ts'
import { lifetimeMs } from '../lib/terms.ts'

export type WhisperPlan = Catalog['products']['whisper']['plans'][number]

/** What is sealed besides the data, and makes it longer. */
export type Sealing = { name?: string; mediaType?: string; hasPassword: boolean }

const EMPTY = {
  kind: 'Text' as 'Text' | 'File',
  text: '',
  file: null as File | null,
  /** As the fields have them. */
  reads: '1',
  /** In the person's own zone. */
  opensAt: '',
  password: '',
  /** The password if this page made it, since nobody knows it by heart. */
  suggested: '',
  receipt: false,
  switchId: '',
}

export type Draft = typeof EMPTY
export const draft = signal<Draft>(EMPTY)

export const edit = (changes: Partial<Draft>): void => {
  draft.value = { ...draft.value, ...changes }
}

export const clearDraft = (): void => {
  draft.value = EMPTY
}

/** The length of the content and what is sealed with it, or null while there is none. */
export function sizeIn({
  kind,
  text,
  file,
  password,
}: Draft): { dataBytes: number; sealing: Sealing } | null {
  const hasPassword = password !== ''
  if (kind === 'File') {
    return file && { dataBytes: file.size, sealing: { ...described(file), hasPassword } }
  }
  const dataBytes = utf8(text).length
  return dataBytes === 0 ? null : { dataBytes, sealing: { hasPassword } }
}

/** The field has no time zone, so `Date` reads it in the person's own. */
export const revealAtIn = ({ opensAt }: Draft): Date | null =>
  opensAt === '' ? null : new Date(opensAt)

/** What is encrypted. */
export async function contentIn({ kind, text, file, password }: Draft) {
  const sealed = password === '' ? {} : { password }
  if (kind === 'File' && file) {
    return { data: new Uint8Array(await file.arrayBuffer()), ...described(file), ...sealed }
  }
  return { data: utf8(text), ...sealed }
}

/** The name and type of a file, as far as the envelope accepts them. */
function described({ name, type }: File): { name?: string; mediaType?: string } {
  const safe = safeName(name)
  return {
    ...(safe === null ? {} : { name: safe }),
    ...(isMediaType(type) ? { mediaType: type } : {}),
  }
}

/** Why this plan cannot take the draft, or null. */
export function refusalOf(plan: WhisperPlan, asked: Draft, now: number): string | null {
  const { maxCiphertextBytes, readLimit, durationLabel } = plan
  const size = sizeIn(asked)
  if (size) {
    const largest = largestContent(maxCiphertextBytes, size.sealing)
    if (size.dataBytes > largest) {
      return `Too small: it holds ${upTo(largest)}, and this is ${sizeOf(size.dataBytes)}.`
    }
  }
  if (Number(asked.reads) > readLimit) return `Maximum ${plural(readLimit, 'read')}.`
  const lifetime = lifetimeMs(durationLabel)
  // As the service compares: the lifetime begins when it is paid, so there is a little less room than this.
  if (lifetime !== null && (revealAtIn(asked)?.getTime() ?? 0) >= now + lifetime) {
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
