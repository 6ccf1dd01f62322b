/** The tools for anything that was bought: replace its tokens, end it. */
import { isToken, type TokenKind } from '../lib/ids.ts'
import { Type } from '../lib/json-schema.ts'
import { type Product, SOLD_PRODUCTS } from '../lib/product-names.ts'
import { Refusal } from './answers.ts'
import { type HeldTool, NOUNS, type Role, TOKEN_META, text } from './tool.ts'

const OWNED: Record<Product, string> = {
  catch: 'the inbox with all that it received',
  pulse: 'the monitor',
  whisper: 'the whisper with the reads that are left',
}

export const DESTROY: HeldTool = {
  name: 'destroy',
  title: 'Destroy what was bought',
  description: () =>
    'Destroys an inbox with all that it received, a monitor, or a whisper that has a receipt, for good. Nothing is refunded.',
  hints: { destroys: true, repeatable: true },
  about: { catch: 'owner', pulse: 'owner', whisper: 'receipt' },
  input: () => ({}),
  async run({ secrets, held }) {
    const { product, label, origin } = held
    await secrets.confirm(
      `Destroy ${OWNED[product]}, "${label}", for good? Nothing is refunded. Seller: ${origin}.`,
      held,
    )
    await held.done('DELETE', held.path)
    held.forget?.()
    return { text: `The ${NOUNS[product]} ${label} is destroyed.` }
  },
}

export const ROTATE_TOKEN: HeldTool = {
  name: 'rotate_token',
  title: 'Replace a token',
  description: (way) =>
    `Replaces a token of an inbox or a monitor, if others have seen it. An ingest or ping token ends at once, an owner token with the first use of the new one. ${
      way === 'local' ? 'The new one is saved.' : 'The result has the new one: save it.'
    }`,
  hints: { destroys: true },
  about: { catch: 'owner', pulse: 'owner' },
  input: () => ({
    kind: Type.Enum(['owner', 'ingest', 'ping'], {
      description: 'Which: an inbox has owner and ingest, a monitor owner and ping',
    }),
  }),
  needs: ['kind'],
  output: Type.Object({
    rotated: Type.String(),
    publicId: Type.String(),
    token: Type.Optional(Type.String({ description: 'A secret' })),
    next: Type.String(),
  }),
  async run({ args, secrets, way, held }) {
    const { product, publicId } = held
    const kind = args.kind as Role
    if (!(`${kind}Token` in SOLD_PRODUCTS[product].tokens)) {
      const kinds = Object.keys(SOLD_PRODUCTS[product].tokens).map((name) => name.slice(0, -5))
      throw new Refusal(`kind must be ${kinds.join(' or ')} here. Nothing was changed.`)
    }
    await secrets.confirm(
      `Replace the ${kind} token of "${held.label}"? Seller: ${held.origin}.`,
      held,
    )
    held.keep?.(kind)
    const token = text((await held.json('POST', `${held.path}/tokens/${kind}`)).token)
    // What is kept here may still be the right one, so nothing else takes its place.
    if (!isToken(`${product}_${kind}` as TokenKind, token)) {
      throw new Refusal(`The service answered without a new ${kind} token. Nothing was saved.`)
    }
    held.keep?.(kind, token)
    const next = {
      owner: 'The one before works until the new one is used for the first time: use it once now.',
      ingest: 'The one before ended: senders that prove themselves need the new one.',
      ping: 'The one before pings no more: the job needs the new one, and has an interval and a grace to get it.',
    }[kind as 'owner' | 'ingest' | 'ping']
    return {
      value: {
        rotated: kind,
        publicId,
        ...(way === 'results' ? { token } : {}),
        next: `${NEW_TOKEN[way]} ${next}`,
      },
      ...(way === 'meta' ? { meta: { [TOKEN_META]: token } } : {}),
    }
  },
}

const NEW_TOKEN = {
  local: 'The new one is saved.',
  results: 'Save the new one now.',
  meta: `The new one is in _meta["${TOKEN_META}"] of this result: save it now.`,
}
