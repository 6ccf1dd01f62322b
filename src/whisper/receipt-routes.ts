/** WHISPER for its buyer: when it was read, who is told of it, and destroying it. Needs the receipt token. */

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Alerts } from '../alerts/alerts.ts'
import { mountAlerts } from '../http/alerts/routes.ts'
import type { App } from '../http/app.ts'
import { problem } from '../http/errors.ts'
import type { Limits } from '../http/limits.ts'
import { createOwner, OWNER_ERRORS } from '../http/owner.ts'
import { errors, NoContent } from '../http/schemas.ts'
import type { EventStreams } from '../http/streams.ts'
import type { Clock } from '../lib/clock.ts'
import { Type } from '../lib/json-schema.ts'
import { testAlert } from './alerts.ts'
import { livingReceipt, type ReceiptRow } from './receipt-store.ts'
import type { Receipts } from './receipts.ts'
import { publicId, WhisperReceipt } from './schema.ts'

type Owned = { Params: { publicId: string } }

export function mountReceipts(
  app: App,
  deps: {
    receipts: Receipts
    alerts: Alerts
    limits: Limits
    streams: EventStreams
    clock: Clock
  },
): void {
  const { receipts, limits, streams, clock } = deps
  const owner = createOwner<ReceiptRow>(app, {
    limits,
    streams,
    kind: 'whisper_receipt',
    find: receipts.owned,
    used: receipts.used,
    // No route of a receipt streams or waits.
    listen: () => null,
  })
  const onRequest = owner.required
  const about = {
    tags: ['whisper'],
    isLinked: true,
    security: [{ bearer: [] }],
    params: Type.Object({ publicId }),
  }

  mountAlerts(
    app,
    { ...deps, owner },
    {
      product: 'whisper',
      path: '/api/whisper/:publicId/receipt/alerts',
      operations: 'ReceiptAlerts',
      whose: 'a whisper',
      publicId,
      test: testAlert,
      guard: ({ public_id: id }) => livingReceipt(id, clock.now()),
      async changeable(request: FastifyRequest, reply: FastifyReply) {
        await owner.required(request, reply)
        if (receipts.hasEnded(owner.of(request))) throw problem('not found')
      },
    },
  )
  app.get<Owned>(
    '/api/whisper/:publicId/receipt',
    {
      onRequest,
      schema: {
        ...about,
        operationId: 'getReceipt',
        summary: 'How often and when a whisper was read, and how it ended',
        description:
          'For the buyer, with the receipt token. It says when, and never who. It can be asked until 24 hours after the end.',
        response: { 200: WhisperReceipt, ...errors(...OWNER_ERRORS) },
      },
    },
    owner.answers(async (receipt) => {
      const shown = await receipts.shown(receipt)
      return () => shown
    }),
  )
  app.delete<Owned>(
    '/api/whisper/:publicId',
    {
      onRequest,
      schema: {
        ...about,
        operationId: 'destroyWhisper',
        summary: 'Destroy a whisper: the bytes are deleted now, and the receipt says so',
        description:
          'For the buyer, with the receipt token. Nobody can read it any more. Nothing is paid back.',
        response: { 204: NoContent, ...errors(...OWNER_ERRORS) },
      },
    },
    owner.answers(async (receipt, _request, reply) => {
      if (!(await receipts.destroy(receipt))) throw problem('not found')
      return () => reply.code(204).send()
    }),
  )
}
