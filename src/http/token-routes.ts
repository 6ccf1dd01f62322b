/** Replacing a token of a capability, for its owner: whoever has seen the one before can do nothing with it any more. */

import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from '../lib/json-schema.ts'
import type { AnyProduct } from '../lib/product-names.ts'
import type { App } from './app.ts'
import { ignoreBody } from './body.ts'
import { problem } from './errors.ts'
import { OWNER_ERRORS, type Owner } from './owner.ts'
import { errors, NewToken } from './schemas.ts'

/** Mounts the route. `rotate` makes a token of a kind, or returns null if the capability is gone. */
export function mountTokens<Row extends { public_id: string }, Kind extends NewToken['kind']>(
  app: App,
  owner: Owner<Row>,
  {
    product,
    noun,
    publicId,
    kinds,
    changeable = owner.required,
    rotate,
  }: {
    product: AnyProduct
    /** Such as `Inbox`, for the id of the operation. */
    noun: string
    publicId: ReturnType<typeof Type.String>
    kinds: readonly Kind[]
    /** Like `owner.required`, but whoever may change nothing any more is not found. */
    changeable?(request: FastifyRequest, reply: FastifyReply): Promise<void>
    rotate(row: Row, kind: Kind): Promise<string | null>
  },
): void {
  app.post<{ Params: { publicId: string; kind: Kind } }>(
    `/api/${product}/:publicId/tokens/:kind`,
    {
      onRequest: [ignoreBody, changeable],
      schema: {
        tags: [product],
        isLinked: true,
        operationId: `rotate${noun}Token`,
        summary: 'Replace a token by a new one',
        description:
          'For a token that has leaked. The new one is in this answer alone, and the former one is refused from now on.',
        security: [{ bearer: [] }],
        params: Type.Object({
          publicId,
          kind: Type.Enum([...kinds], { description: 'Which token', examples: [kinds[0]] }),
        }),
        response: { 200: NewToken, ...errors(...OWNER_ERRORS) },
      },
      // An unknown kind is answered with `not found`.
      validatorCompiler: () => () => true,
    },
    owner.answers(async (row, { params: { kind } }) => {
      const token = kinds.includes(kind) ? await rotate(row, kind) : null
      if (token === null) throw problem('not found')
      return () => ({ kind, token })
    }),
  )
}
