/** Rotating the ping token, for the owner: one that has leaked must not keep a dead job alive. */
import type { App } from '../http/app.ts'
import { problem } from '../http/errors.ts'
import { OWNER_ERRORS, type Owner } from '../http/owner.ts'
import { errors } from '../http/schemas.ts'
import { Type } from '../http/type.ts'
import { NewPingToken, publicId } from './schema.ts'
import type { PulseService } from './service.ts'
import type { MonitorRow } from './store.ts'

export function mountPingToken(
  app: App,
  {
    owner,
    changeable,
    service,
  }: {
    owner: Owner<MonitorRow>
    /** The hook of routes that an expired monitor has no more. */
    changeable: Owner<MonitorRow>['required']
    service: PulseService
  },
): void {
  app.post<{ Params: { publicId: string } }>(
    '/api/pulse/:publicId/ping-token',
    {
      onRequest: changeable,
      schema: {
        tags: ['pulse'],
        isLinked: true,
        operationId: 'rotatePingToken',
        summary: 'Make another ping token; the one before pings no more',
        security: [{ bearer: [] }],
        params: Type.Object({ publicId }),
        response: { 200: NewPingToken, ...errors(...OWNER_ERRORS) },
      },
    },
    owner.answers(async (monitor) => {
      const pingToken = await service.rotatePingToken(monitor)
      if (pingToken === null) throw problem('not found')
      return () => ({ pingToken })
    }),
  )
}
