/**
 * The file format in which the command line and the web pages save a capability. The file holds
 * bearer secrets: its holder has the capability, so it must be stored like a key.
 */
import type { CatchCapability } from '../catch/schema.ts'
import { isId, isToken, type TokenKind } from '../lib/ids.ts'
import { objectIn } from '../lib/json.ts'
import { isPlanId, isProduct, type PlanId, SOLD_PRODUCTS } from '../lib/product-names.ts'
import { serviceOrigin } from '../lib/service-origin.ts'
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

/** The file of a monitor without its owner's token, for a machine whose jobs only ping. */
export type SavedPing = Omit<SavedCapability, 'capability'> & {
  capability: Omit<PulseCapability, 'ownerToken'>
}

/** What a file can have. Whatever reads only whole capabilities refuses a `SavedPing`. */
export type Kept = SavedCapability | SavedPing

export const isPingOnly = (kept: Kept): kept is SavedPing =>
  kept.capability.product === 'pulse' && !('ownerToken' in kept.capability)

/**
 * Formats a capability file: a few lines of JSON, with a line break at the end.
 *
 * ```ts
 * const inbox = await mayfly.buyCatch({ planId: 'spark', onInvoice })
 * const text = formatCapability({ capability: inbox, baseUrl, planId: 'spark' })
 * ```
 * @throws RangeError for a part that is malformed.
 */
export function formatCapability(saved: SavedCapability): string {
  const text = formatKept(saved)
  if (parseCapability(text) === null) throw new RangeError('not the parts of a capability')
  return text
}

export function formatKept({ capability, baseUrl, planId }: Kept): string {
  const { product, publicId, expiresAt } = capability
  const { tokens, extraTokens } = SOLD_PRODUCTS[product]
  const secrets = [...Object.keys({ ...tokens, ...extraTokens }), 'code'].map((name) => [
    name,
    (capability as Record<string, unknown>)[name],
  ])
  // JSON leaves out what is undefined.
  const file = {
    mayfly: VERSION,
    product,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    planId,
    publicId,
    ...Object.fromEntries(secrets),
    expiresAt,
  }
  return `${JSON.stringify(file, null, 2)}\n`
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
  const kept = parseKept(text)
  return kept === null || isPingOnly(kept) ? null : kept
}

export function parseKept(text: string): Kept | null {
  const file = text.length > MAX_FILE_CHARS ? null : objectIn(text)
  if (file?.mayfly !== VERSION) return null
  const { product, publicId, expiresAt, planId } = file
  const baseUrl = typeof file.baseUrl === 'string' ? serviceOrigin(file.baseUrl) : null
  if (!isProduct(product)) return null
  if (baseUrl === null || typeof publicId !== 'string' || !isId(product, publicId)) return null
  if (typeof expiresAt !== 'string' || !isDateTime(expiresAt)) return null
  if (planId !== undefined && !isPlanId(planId)) return null
  const capability: Record<string, string> = { product, publicId }
  const { tokens, extraTokens } = SOLD_PRODUCTS[product]
  for (const [name, kind] of Object.entries<TokenKind>({ ...tokens, ...extraTokens })) {
    const token = file[name]
    const isOptional = name in extraTokens || (product === 'pulse' && name === 'ownerToken')
    if (token === undefined && isOptional) continue
    if (typeof token !== 'string' || !isToken(kind, token)) return null
    capability[name] = token
  }
  capability.expiresAt = expiresAt
  if (product === 'whisper' && file.code !== undefined) {
    const code = typeof file.code === 'string' ? parseWhisperCode(file.code) : null
    if (code?.publicId !== publicId || code.readToken !== capability.readToken) return null
    capability.code = file.code as string
  }
  const plan = planId === undefined ? {} : { planId }
  return { capability, baseUrl, ...plan } as unknown as Kept
}

/** A time as the service writes it, which a terminal may show. */
export function isDateTime(text: string): boolean {
  return DATE_TIME.test(text) && !Number.isNaN(Date.parse(text))
}
