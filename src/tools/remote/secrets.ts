/** Where the tokens of `/mcp` are: with the caller, who sends the one that a call needs. None is kept. */
import { PRODUCT_NAMES, type Product } from '../../lib/product-names.ts'
import { apiBy, Refusal, refusalOf } from '../answers.ts'
import { MAX_CIPHERTEXT_BYTES } from '../buying.ts'
import { type Brought, type Context, oneOf, TOKEN_META, text } from '../tool.ts'
import type { Call } from './own-requests.ts'

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

async function readWhisper(call: Call, publicUrl: () => string): Promise<Brought> {
  const path = `/w/${idIn(call, ['whisper']).publicId}`
  const answered = await call.ask({
    method: 'GET',
    path,
    headers: {
      authorization: `Bearer ${neededToken(call, 'whisper_read_')}`,
      'x-whisper-max-bytes': String(MAX_CIPHERTEXT_BYTES),
    },
  })
  if (answered.status === 200) return { ciphertext: answered.bytes }
  const refusal = refusalOf(answered)
  if (refusal.phrase !== 'ciphertext too large') throw refusal
  throw new Refusal(
    `ciphertext too large. A call answers at most ${MAX_CIPHERTEXT_BYTES} bytes, and this has more. No read was spent. A program reads it over HTTP from ${publicUrl()}${path}`,
  )
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
  const kinds = oneOf(products.map((name) => `${name}_…`))
  throw new Refusal(`not found. publicId must be the id of a purchase, ${kinds}. Nothing was done.`)
}

/** The token of a call, in its arguments or its `_meta`. Null if it has none. @throws Refusal */
export function tokenIn({ way, args, meta }: Call): string | null {
  const token = meta[TOKEN_META] ?? (way === 'results' ? args.token : undefined)
  if (token === undefined) return null
  // Anything else than visible ASCII would be refused by the parser, with another error.
  if (typeof token === 'string' && /^[\x21-\x7e]{1,128}$/.test(token)) return token
  throw new Refusal('unauthorized. This is no token. Nothing was done.')
}

/** @throws Refusal if the call has no token of this kind. The service says of some only that nothing is found. */
export function neededToken(call: Call, kind: string): string {
  const token = tokenIn(call)
  if (token === null) throw new Refusal(call.way === 'meta' ? NO_TOKEN_IN_META : NO_TOKEN)
  if (token.startsWith(kind)) return token
  throw new Refusal(`unauthorized. This tool takes a ${kind}… token for it. Nothing was done.`)
}

const NO_TOKEN = 'unauthorized. This tool needs the argument token: it came with the purchase.'
const NO_TOKEN_IN_META = `unauthorized. This tool needs a token in _meta["${TOKEN_META}"] of the call. A host that drops _meta connects without ?tokens=meta.`
