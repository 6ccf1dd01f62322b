/** The history of a monitor, for its owner. */

import type { Db } from '../db/db.ts'
import type { App } from '../http/app.ts'
import { invalid, problem } from '../http/errors.ts'
import { OWNER_ERRORS, type Owner } from '../http/owner.ts'
import { errors } from '../http/schemas.ts'
import { Type } from '../http/type.ts'
import type { ServiceClock } from '../lib/clock.ts'
import { historyPage, placeOf } from './history.ts'
import { DEFAULT_ENTRIES, PulseHistory, PulseHistoryQuery } from './history-schema.ts'
import { publicId } from './schema.ts'
import type { MonitorRow } from './store.ts'

type Asked = { Params: { publicId: string }; Querystring: PulseHistoryQuery }

/** What a history is read with. */
export type HistoryParts = { db: Pick<Db, 'read'>; clock: Pick<ServiceClock, 'now' | 'windows'> }

export function mountHistory(
  app: App,
  { owner, ...parts }: { owner: Owner<MonitorRow> } & HistoryParts,
): void {
  app.get<Asked>(
    '/api/pulse/:publicId/history',
    {
      onRequest: owner.required,
      config: { invalid: { query: 'invalid query' } },
      schema: {
        tags: ['pulse'],
        isLinked: true,
        operationId: 'getHistory',
        summary: 'Pings, runs, late spells and blind windows of a whole life, and the uptime',
        description: 'Newest first, in pages. It stays readable until the monitor is gone.',
        security: [{ bearer: [] }],
        params: Type.Object({ publicId }),
        querystring: PulseHistoryQuery,
        response: { 200: PulseHistory, ...errors('invalid query', ...OWNER_ERRORS) },
      },
    },
    owner.answers<Asked>(async (monitor, { query }) => {
      const { limit = DEFAULT_ENTRIES, cursor, type = null } = query
      const place = cursor === undefined ? null : placeOf(cursor)
      if (cursor !== undefined && place === null) {
        throw invalid('invalid query', {
          field: 'cursor',
          expected: 'the nextCursor of a page of this history',
        })
      }
      const page = await historyPage(parts, monitor, { limit, place, type })
      if (page === null) throw problem('not found')
      return () => page
    }),
  )
}
