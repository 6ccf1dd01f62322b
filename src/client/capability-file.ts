/**
 * The file format in which the command line and the web pages save a capability. The file holds
 * bearer secrets: its holder has the capability, so it must be stored like a key.
 */
import type { CatchCapability } from '../catch/schema.ts'
import { isId, isToken, type TokenKind } from '../lib/ids.ts'
import { objectIn } from '../lib/json.ts'
import { isPlanId, isProduct, type PlanId, SOLD_PRODUCTS } from '../lib/product-names.ts'
import { parseWhisperCode } from '../protocol/whisper-code.ts'
import type { PulseCapability } from '../pulse/schema.ts'
import type { WhisperCapability } from '../whisper/schema.ts'

/** A capability of any product. A whisper's includes its share code. */
export type AnyCapability =
  | CatchCapability
  | PulseCapability
  | (WhisperCapability & { code?: string })

/** The contents of a capability file. */
export type SavedCapability = {
  capability: AnyCapability
  /** The address of the service that sold it, without a trailing slash. */
  baseUrl: string
  planId?: PlanId | undefined
}

/** Fits a share code, which is the longest part, and the ids, tokens and address. */
const MAX_FILE_CHARS = 8_192
const VERSION = 1
// RFC 3339 §5.6, as the service writes it.
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

/**
 * Formats a capability file: a few lines of JSON, with a line break at the end.
 *
 * ```ts
 * const inbox = await mayfly.buyCatch({ planId: 'spark', onInvoice })
 * const text = formatCapability({ capability: inbox, baseUrl, planId: 'spark' })
 * ```
 * @throws RangeError for a part that is malformed.
 */
export function formatCapability({ capability, baseUrl, planId }: SavedCapability): string {
  const { product, publicId, expiresAt } = capability
  const file: Record<string, unknown> = { mayfly: VERSION, product }
  file.baseUrl = baseUrl.replace(/\/+$/, '')
  if (planId !== undefined) file.planId = planId
  file.publicId = publicId
  const { tokens, extraTokens } = SOLD_PRODUCTS[product]
  for (const name of Object.keys({ ...tokens, ...extraTokens })) {
    file[name] = (capability as Record<string, unknown>)[name]
  }
  if ('code' in capability && capability.code !== undefined) file.code = capability.code
  file.expiresAt = expiresAt
  const text = `${JSON.stringify(file, null, 2)}\n`
  if (parseCapability(text) === null) throw new RangeError('not the parts of a capability')
  return text
}

/**
 * Parses a capability file. Returns null for any other text, and for a file of another version.
 * Unknown members are dropped.
 *
 * ```ts
 * const saved = parseCapability(text)
 * if (saved?.capability.product === 'catch') mayfly.catch(saved.capability)
 * ```
 */
export function parseCapability(text: string): SavedCapability | null {
  const read = readFile(text)
  if (read === null) return null
  const { file, product, publicId, expiresAt, baseUrl, planId } = read
  const capability: Record<string, string> = { product, publicId }
  const { tokens, extraTokens } = SOLD_PRODUCTS[product]
  for (const [name, kind] of Object.entries<TokenKind>({ ...tokens, ...extraTokens })) {
    const token = file[name]
    if (token === undefined && name in extraTokens) continue
    if (typeof token !== 'string' || !isToken(kind, token)) return null
    capability[name] = token
  }
  capability.expiresAt = expiresAt
  if (product === 'whisper' && file.code !== undefined) {
    const code = typeof file.code === 'string' ? parseWhisperCode(file.code) : null
    if (code?.publicId !== publicId || code.readToken !== capability.readToken) return null
    capability.code = file.code as string
  }
  return {
    capability: capability as AnyCapability,
    baseUrl,
    ...(planId === undefined ? {} : { planId }),
  }
}

/**
 * What a job needs to ping a monitor. Without the owner's token it can neither read, change nor destroy the
 * monitor.
 */
export type PingCapability = Omit<PulseCapability, 'ownerToken'>

/** The contents of a file for a machine whose jobs only ping. */
export type SavedPing = { capability: PingCapability; baseUrl: string; planId?: PlanId | undefined }

/** Formats the file of a monitor without its owner's token. Whatever reads only whole capabilities refuses it. */
export function formatPing({ capability, baseUrl, planId }: SavedPing): string {
  const { product, publicId, pingToken, expiresAt } = capability
  const plan = planId === undefined ? {} : { planId }
  const file = { mayfly: VERSION, product, baseUrl, ...plan, publicId, pingToken, expiresAt }
  return `${JSON.stringify(file, null, 2)}\n`
}

/** Parses such a file. Returns null for any other text, such as a whole capability. */
export function parsePing(text: string): SavedPing | null {
  const read = readFile(text)
  if (read?.product !== 'pulse' || read.file.ownerToken !== undefined) return null
  const { file, publicId, expiresAt, baseUrl, planId } = read
  const { pingToken } = file
  if (typeof pingToken !== 'string' || !isToken('pulse_ping', pingToken)) return null
  return {
    capability: { product: 'pulse', publicId, pingToken, expiresAt },
    baseUrl,
    ...(planId === undefined ? {} : { planId }),
  }
}

type FileParts = {
  file: Record<string, unknown>
  product: AnyCapability['product']
  publicId: string
  expiresAt: string
  baseUrl: string
  planId: PlanId | undefined
}

/** What all files have, and the members that are still to be checked. */
function readFile(text: string): FileParts | null {
  const file = text.length > MAX_FILE_CHARS ? null : objectIn(text)
  if (file?.mayfly !== VERSION) return null
  const { product, publicId, expiresAt, planId } = file
  const baseUrl = serviceAddress(file.baseUrl)
  if (!isProduct(product)) return null
  if (baseUrl === null || typeof publicId !== 'string' || !isId(product, publicId)) return null
  if (typeof expiresAt !== 'string' || !isDateTime(expiresAt)) return null
  if (planId !== undefined && !isPlanId(planId)) return null
  return { file, product, publicId, expiresAt, baseUrl, planId }
}

/** An HTTP address that tokens may be sent to, or null. Refuses an address with a password. */
function serviceAddress(value: unknown): string | null {
  if (typeof value !== 'string' || !URL.canParse(value)) return null
  const { protocol, username, password, search, hash } = new URL(value)
  if (protocol !== 'https:' && protocol !== 'http:') return null
  return username + password + search + hash === '' ? value.replace(/\/+$/, '') : null
}

function isDateTime(text: string): boolean {
  return DATE_TIME.test(text) && !Number.isNaN(Date.parse(text))
}
