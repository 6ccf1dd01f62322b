/** The switch of a monitor, for its owner: the id that binds a secret to the monitor's silence. */
import type { FastifyRequest } from 'fastify'
import type { App } from '../http/app.ts'
import { sendNoContent } from '../http/discarded-body.ts'
import { problem } from '../http/errors.ts'
import { OWNER_ERRORS, type Owner } from '../http/owner.ts'
import { errors, NoContent } from '../http/schemas.ts'
import { Type } from '../http/type.ts'
import type { SwitchOwner } from '../switches/owner.ts'
import { publicId, RevealSwitch } from './schema.ts'
import { existingMonitor, type MonitorRow } from './store.ts'

type Owned = { Params: { publicId: string } }

const about = {
  tags: ['pulse'],
  isLinked: true,
  security: [{ bearer: [] }],
  params: Type.Object({ publicId }),
}

export function mountSwitch(
  app: App,
  {
    owner,
    changeable,
    switches,
    now,
  }: {
    owner: Owner<MonitorRow>
    /** The hook of routes that an expired monitor has no more. */
    changeable: Owner<MonitorRow>['required']
    switches: SwitchOwner
    now(): number
  },
): void {
  app.post<Owned>(
    '/api/pulse/:publicId/switch',
    {
      onRequest: changeable,
      schema: {
        ...about,
        operationId: 'makeSwitch',
        summary: 'The switch of a monitor, which is made with the first call',
        description:
          'A whisper that is bought with this id can be read only after the monitor fell silent. Later calls return the same switch.',
        response: { 200: RevealSwitch, ...errors(...OWNER_ERRORS) },
      },
    },
    owner.answers(async ({ public_id: monitorId }) => {
      // A monitor that is destroyed meanwhile must leave no switch behind.
      const switchId = await switches.make(monitorId, existingMonitor(monitorId, now()))
      if (switchId === null) throw problem('not found')
      return () => ({ switchId })
    }),
  )
  app.delete<Owned>(
    '/api/pulse/:publicId/switch',
    {
      onRequest: changeable,
      schema: {
        ...about,
        operationId: 'retireSwitch',
        summary: 'Retire the switch: nothing more is bound to it, and what is bound stays bound',
        description: 'Whispers that were bound to it before still wait for the monitor.',
        response: { 204: NoContent, ...errors(...OWNER_ERRORS) },
      },
    },
    owner.answers(async ({ public_id: monitorId }, request, reply) => {
      if (!(await switches.retire(monitorId))) throw problem('not found')
      return () => sendNoContent(request as FastifyRequest, reply)
    }),
  )
}
