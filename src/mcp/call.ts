/** One call of a tool, and its results. A result never has a token outside of `_meta`, unless the caller asked. */
import { ERRORS, type Phrase } from '../http/errors.ts'
import { isObject, parseJsonBytes } from '../lib/json.ts'
import { PRODUCT_NAMES, type Product } from '../lib/product-names.ts'
import type { Way } from '../mcp-tools/definition.ts'
import { TOKEN_META } from '../mcp-tools/shared.ts'
import { resultText } from '../mcp-tools/stranger.ts'
import type { Answered, Asked, AskOwn, Caller } from './own-requests.ts'

/** What the caller's connection says about all of its calls. */
export type Connection = Caller & {
  way: Exclude<Way, 'local'>
  /** Whether an unpaid purchase is answered with an error of JSON-RPC, as the first drafts want it. */
  isPaymentError: boolean
  /** The Authorization header, for a client that cannot write `_meta`. */
  authorization: string | undefined
  /**
   * Counts this many bytes besides the message, until the client has taken the answer. Another number replaces it.
   * False, and nothing has changed, if the budget has no room for them.
   */
  hold(bytes: number): boolean
}

export type Call = {
  connection: Connection
  arguments: Record<string, unknown>
  meta: Record<string, unknown>
  /** Tells the client that the call is under way, if it asked to be told. */
  progress(message: string): Promise<void>
  ask(asked: Asked): Promise<Answered>
}

export type ToolResult = {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  _meta?: Record<string, unknown>
  isError?: boolean
}

export type Tool = (call: Call) => Promise<ToolResult>

/** A result that a model can act on: a mistake of the caller, or a refusal of the service. */
export class Refusal extends Error {
  override name = 'Refusal'
  /** The status of the answer that refused; 401 and 400 where nothing was asked. */
  readonly status: number
  readonly retryAfterSeconds: number | null
  constructor(message: string, { status = 400, retryAfterSeconds = null as number | null } = {}) {
    super(message)
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** A purchase that is not paid, for a client that wants it as an error. */
export class PaymentRequired extends Error {
  override name = 'PaymentRequired'
  readonly data: object
  constructor(data: object) {
    super('Payment Required')
    this.data = data
  }
}

export const asking =
  (askOwn: AskOwn, caller: Caller): Call['ask'] =>
  (asked) =>
    askOwn(caller, asked)

/** A result as a value, and as the same value in text for clients that read no values. */
export const resultOf = (value: Record<string, unknown>, meta?: object): ToolResult => ({
  content: [{ type: 'text', text: resultText(value) }],
  structuredContent: value,
  ...(meta ? { _meta: { ...meta } } : {}),
})

export const errorResult = (text: string): ToolResult => ({
  content: [{ type: 'text', text }],
  isError: true,
})

/** The JSON object of an answer. @throws Refusal for any other status, with what the caller can do. */
export function expectJson(answered: Answered, status = 200): Record<string, unknown> {
  if (answered.status !== status) throw refusalOf(answered)
  const value = parseJsonBytes(answered.body)
  if (!isObject(value)) throw new Error('an answer of this service is no JSON object')
  return value
}

/** An error of the service, with its advice: what to do, and where the money is. */
export function refusalOf({ status, headers, body }: Answered): Refusal {
  const fault = faultIn(body)
  const phrase = typeof fault.error === 'string' ? fault.error : `status ${status}`
  const entry = Object.hasOwn(ERRORS, phrase) ? ERRORS[phrase as Phrase] : null
  const retryAfter = headers['retry-after']
  return new Refusal(
    [
      `${phrase}.`,
      ...(typeof fault.expected === 'string' ? [expectation(fault)] : []),
      ...(entry ? [entry.advice] : []),
      ...(typeof fault.revealAt === 'string' ? [`It opens at ${fault.revealAt}.`] : []),
      ...(retryAfter ? [`Retry after ${retryAfter} seconds.`] : []),
      ...(headers['x-request-id'] ? [`X-Request-Id: ${headers['x-request-id']}.`] : []),
    ].join(' '),
    { status, retryAfterSeconds: retryAfter ? Number(retryAfter) : null },
  )
}

/** The error of an answer: its phrase and what it adds. */
export function faultIn(body: Buffer): Record<string, unknown> {
  const value = parseJsonBytes(body)
  return isObject(value) ? value : {}
}

const expectation = ({ field, expected }: Record<string, unknown>): string =>
  typeof field === 'string' ? `${field} must be ${expected}.` : `Expected: ${expected}.`

/** The headers that show the token of a call. @throws Refusal if it has none. */
export function bearer(call: Call): { authorization: string } {
  const shown = bearerIfShown(call)
  if (shown === null) throw new Refusal(NO_TOKEN[call.connection.way], { status: 401 })
  return shown
}

/** The same, or null for a call without a token. @throws Refusal for what cannot be one. */
export function bearerIfShown({
  arguments: given,
  meta,
  connection,
}: Call): { authorization: string } | null {
  const token = meta[TOKEN_META] ?? (connection.way === 'visible' ? given.token : undefined)
  if (token === undefined) {
    const { authorization } = connection
    return authorization === undefined ? null : { authorization }
  }
  // Anything else than visible ASCII would be refused by the parser, with another error.
  if (typeof token !== 'string' || !/^[\x21-\x7e]{1,128}$/.test(token)) {
    throw new Refusal(`unauthorized. ${ERRORS.unauthorized.advice}`, { status: 401 })
  }
  return { authorization: `Bearer ${token}` }
}

const NO_TOKEN = {
  remote: `unauthorized. This tool needs a token: put it into _meta["${TOKEN_META}"] of the call, or let the connection send Authorization: Bearer <token>. A client that can do neither connects with ?tokens=visible.`,
  visible: 'unauthorized. This tool needs a token: pass it as the argument "token".',
}

/** A kind and digits. Anything else could be another path of the service, and is nothing's id. */
const ID = /^[a-z]+_[0-9A-Za-z]+$/

/** The id of what a call is about, as a part of a path. @throws Refusal */
export function idIn({ arguments: given }: Call): string {
  const id = text(given.publicId)
  if (ID.test(id)) return id
  throw new Refusal(`not found. ${ERRORS['not found'].advice}`, { status: 404 })
}

/** The product whose ids begin like the one of a call. @throws Refusal */
export function productOf({ arguments: given }: Call): Product {
  const [kind] = text(given.publicId).split('_')
  const found = PRODUCT_NAMES.find((name) => name === kind)
  if (!found) throw new Refusal('not found. A publicId begins with catch_, whisper_ or pulse_.')
  return found
}

export const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** These members of a value. */
export const pick = (from: object, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(names.map((name) => [name, (from as Record<string, unknown>)[name]]))
