/** Whether the process is alive. It does not depend on the node; the catalogue and /ready report that. */

import type { App } from './app.ts'
import { Type } from './type.ts'

export function mountHealth(app: App): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/health',
    schema: {
      tags: ['system'],
      summary: 'Liveness',
      response: {
        200: Type.Object(
          { service: Type.String(), status: Type.Literal('ok') },
          { description: 'It runs' },
        ),
      },
    },
    handler: async () => ({ service: 'mayfly', status: 'ok' as const }),
  })
}
