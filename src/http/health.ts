/** Whether the process is alive. It does not depend on the node; the catalogue and /ready report that. */

import type { App } from './app.ts'
import { Type } from './type.ts'

const Health = Type.Object(
  { service: Type.String(), status: Type.Literal('ok') },
  { description: 'It runs', 'x-schema': 'Health' },
)

export function mountHealth(app: App): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/health',
    schema: {
      tags: ['system'],
      operationId: { GET: 'getHealth', HEAD: 'headHealth' },
      summary: 'Liveness',
      response: {
        200: Health,
      },
    },
    handler: async () => ({ service: 'mayfly', status: 'ok' as const }),
  })
}
