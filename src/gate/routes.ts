/** The routes of GATE: those of a project's server, and the public keys. */
import type { App } from '../http/app.ts'
import { errors } from '../http/schemas.ts'
import { mountIntents } from './intent-routes.ts'
import { mountProofs } from './proof-routes.ts'
import { GateJwks } from './schema.ts'

const JWKS_MAX_AGE_SECONDS = 300

export function mountGate(
  app: App,
  deps: Parameters<typeof mountIntents>[1] & Parameters<typeof mountProofs>[1],
): void {
  mountIntents(app, deps)
  mountProofs(app, deps)
  app.get(
    '/.well-known/gate-jwks.json',
    {
      schema: {
        tags: ['gate'],
        isInWholeOnly: true,
        operationId: 'getGateKeys',
        summary: 'The Ed25519 keys that verify GATE receipts',
        description: 'A JWK set. Receipts name the key by its `kid`.',
        response: { 200: GateJwks, ...errors('internal error') },
      },
    },
    async (_request, reply) =>
      reply
        .header('cache-control', `public, max-age=${JWKS_MAX_AGE_SECONDS}`)
        .send(deps.service.jwks),
  )
}
