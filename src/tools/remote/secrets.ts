/** Where the tokens of `/mcp` are: with the caller, who sends the one that a call needs. None is kept. */
import { PRODUCT_NAMES, type Product } from '../../lib/product-names.ts'
import { apiBy, Refusal, refusalOf } from '../answers.ts'
import { MAX_CIPHERTEXT_BYTES } from '../buying.ts'
import { type Brought, type Context, oneOf, type Seen, TOKEN_META, text } from '../tool.ts'
import type { Call } from './call.ts'

const NOTHING: Seen = { upTo: 0, beyond: new Set() }

export function secretsOf(call: Call, publicUrl: () => string): Context['secrets'] {
  return {
    async find(roles) {
      const { product, publicId } = idIn(call, Object.keys(roles))
      const token = neededToken(call, `${product}_${roles[product]}_`)
      const headers = { authorization: `Bearer ${token}` }
      return {
        ...apiBy((asked) => call.ask({ ...asked, headers })),
        product,
        publicId,
        path: `/api/${product}/${publicId}`,
        origin: publicUrl(),
        label: publicId,
        seen: () => NOTHING,
        saw: () => undefined,
      }
    },
    alertInbox({ inbox, ingestToken }) {
      if (ingestToken !== undefined) return { inbox, ingestToken }
      throw new Refusal('An inbox in alerts needs its ingestToken. Nothing was changed.')
    },
    readWhisper: () => readWhisper(call, publicUrl),
    confirm: async () => undefined,
  }
}

/** The lengths that are asked for in turn: most whispers are short, and a network reads several of them at once. */
const LENGTHS = [64 * 1024, MAX_CIPHERTEXT_BYTES]
/** What a result holds of each byte until its client has taken it: base64, in the content and on the way. */
const COPIES = 4
/** Other answers have been taken by then. */
const RETRY_SECONDS = 10

async function readWhisper(call: Call, publicUrl: () => string): Promise<Brought> {
  const { connection } = call
  const path = `/w/${idIn(call, ['whisper']).publicId}`
  const authorization = `Bearer ${neededToken(call, 'whisper_read_')}`
  for (const length of LENGTHS) {
    // Before the read is spent: an answer for which there is no room would lose it.
    if (!connection.hold(COPIES * length)) throw new Refusal(NO_ROOM)
    const answered = await call.ask({
      method: 'GET',
      path,
      headers: { authorization, 'x-whisper-max-bytes': String(length) },
    })
    const { status, bytes } = answered
    connection.hold(status === 200 ? COPIES * bytes.length : 0)
    if (status === 200) return { ciphertext: bytes }
    const refusal = refusalOf(answered)
    if (refusal.phrase !== 'ciphertext too large') throw refusal
  }
  throw new Refusal(
    `ciphertext too large. A call answers at most ${MAX_CIPHERTEXT_BYTES} bytes, and this has more. No read was spent. A program reads it over HTTP from ${publicUrl()}${path}`,
  )
}

const NO_ROOM = `rate limited. Other answers to this network hold the memory that this one needs. No read was spent. Retry after ${RETRY_SECONDS} seconds.`

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
  const kinds = oneOf(products.map((name) => `${name}_…`))
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

/** @throws Refusal if the call has no token of this kind. The service says of some only that nothing is found. */
export function neededToken(call: Call, kind: string): string {
  const token = tokenIn(call)
  if (token === null) throw new Refusal(NO_TOKEN[call.connection.way])
  if (token.startsWith(kind)) return token
  throw new Refusal(`unauthorized. This tool takes a ${kind}… token for it. Nothing was done.`)
}

const NO_TOKEN = {
  results: 'unauthorized. This tool needs the argument token: it came with the purchase.',
  meta: `unauthorized. This tool needs a token in _meta["${TOKEN_META}"] of the call. A host that drops _meta connects without ?tokens=meta.`,
}
