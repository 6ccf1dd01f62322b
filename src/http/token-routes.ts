/** Replacing a token of a capability, for its owner: whoever has seen the one before can do nothing with it any more. */

import { Type } from '../lib/json-schema.ts'
import { ignoreBody } from './body.ts'
import { problem } from './errors.ts'
import type { Owner } from './owner.ts'
import { NewToken } from './schemas.ts'

/** Mounts the route. `rotate` makes a token of a kind, or returns null if the capability is gone. */
export function mountTokens<Row extends { public_id: string }, Kind extends NewToken['kind']>(
  owner: Owner<Row>,
  {
    noun,
    kinds,
    rotate,
  }: {
    /** Such as `Inbox`, for the id of the operation. */
    noun: string
    kinds: readonly Kind[]
    rotate(row: Row, kind: Kind): Promise<string | null>
  },
): void {
  owner.mount<{ Params: { publicId: string; kind: Kind } }>(
    ['POST', `/api/${owner.product}/:publicId/tokens/:kind`],
    {
      isInWholeOnly: true,
      operationId: `rotate${noun}Token`,
      summary: 'Replace a token by a new one',
      description:
        'For a token that has leaked. The new one is in this answer alone, and the former one is refused from now on.',
      params: Type.Object({
        publicId: owner.publicId,
        kind: Type.Enum([...kinds], { description: 'Which token', examples: [kinds[0]] }),
      }),
      response: { 200: NewToken },
      // An unknown kind is answered with `not found`.
      route: { onRequest: [ignoreBody, owner.changeable], validatorCompiler: () => () => true },
    },
    owner.answers(async (row, { params: { kind } }) => {
      const token = kinds.includes(kind) ? await rotate(row, kind) : null
      if (token === null) throw problem('not found')
      return () => ({ kind, token })
    }),
  )
}
