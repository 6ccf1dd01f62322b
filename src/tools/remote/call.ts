/** One call at `/mcp`: its connection, its token, and what it is about. */
import { PRODUCT_NAMES, type Product } from '../../lib/product-names.ts'
import { Refusal } from '../answers.ts'
import { TOKEN_META, text, type Way } from '../tool.ts'
import type { ToolCall } from '../tools.ts'
import type { AskOwn, Caller, OwnRequest } from './own-requests.ts'

/** What the caller's connection says about all of its calls. */
export type Connection = Caller & {
  way: Exclude<Way, 'local'>
  /** Whether an unpaid purchase is answered with an error of JSON-RPC, as the first drafts want it. */
  isPaymentError: boolean
  /** The Authorization header, for a client of one capability. */
  authorization: string | undefined
  /**
   * Counts this many bytes besides the message, until the client has taken the answer. Another number replaces it.
   * False, and nothing has changed, if the budget has no room for them.
   */
  hold(bytes: number): boolean
}

/** A call of a tool, with what asks the service for its caller. */
export type Call = ToolCall & {
  connection: Connection
  ask(asked: OwnRequest): ReturnType<AskOwn>
}

/** A kind and digits. Anything else could be another path of the service, and is nothing's id. */
const ID = /^[a-z]+_[0-9A-Za-z]+$/

/** What a call is about. @throws Refusal for what is no id of such a product. */
export function idIn(
  { args }: Call,
  products: readonly string[],
): { product: Product; publicId: string } {
  const publicId = text(args.publicId)
  const product = PRODUCT_NAMES.find((name) => publicId.startsWith(`${name}_`))
  if (product && products.includes(product) && ID.test(publicId)) return { product, publicId }
  const kinds = products.map((name) => `${name}_…`).join(' or ')
  throw new Refusal(`not found. publicId must be the id of a purchase, ${kinds}. Nothing was done.`)
}

/** The token of a call: of its arguments, its `_meta` or its connection. Null if it has none. @throws Refusal */
export function tokenIn({ args, meta, connection }: Call): string | null {
  const token = meta[TOKEN_META] ?? (connection.way === 'results' ? args.token : undefined)
  const shown = token ?? connection.authorization?.replace(/^Bearer +/i, '')
  if (shown === undefined) return null
  // Anything else than visible ASCII would be refused by the parser, with another error.
  if (typeof shown === 'string' && /^[\x21-\x7e]{1,128}$/.test(shown)) return shown
  throw new Refusal('unauthorized. This is no token. Nothing was done.')
}

/** @throws Refusal if the call has no token. */
export function neededToken(call: Call): string {
  const token = tokenIn(call)
  if (token !== null) return token
  throw new Refusal(NO_TOKEN[call.connection.way])
}

const NO_TOKEN = {
  results: 'unauthorized. This tool needs the argument token: it came with the purchase.',
  meta: `unauthorized. This tool needs a token in _meta["${TOKEN_META}"] of the call. A host that drops _meta connects without ?tokens=meta.`,
}
