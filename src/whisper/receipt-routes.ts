/** WHISPER for its buyer: when it was read, who is told of it, and destroying it. Needs the receipt token. */

import type { Alerts } from '../alerts/alerts.ts'
import { mountAlerts } from '../http/alerts/routes.ts'
import type { App } from '../http/app.ts'
import type { Limits } from '../http/limits.ts'
import { createOwner } from '../http/owner.ts'
import { NoContent } from '../http/schemas.ts'
import type { EventStreams } from '../http/streams.ts'
import type { Clock } from '../lib/clock.ts'
import { testAlert } from './alerts.ts'
import { livingReceipt, type ReceiptRow } from './receipt-store.ts'
import type { Receipts } from './receipts.ts'
import { publicId, WhisperReceipt } from './schema.ts'

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
    product: 'whisper',
    publicId,
    kind: 'whisper_receipt',
    find: receipts.owned,
    hasEnded: receipts.hasEnded,
    used: receipts.used,
    // No route of a receipt streams or waits.
    listen: () => null,
  })

  mountAlerts(
    { ...deps, owner },
    {
      path: '/api/whisper/:publicId/receipt/alerts',
      operations: 'ReceiptAlerts',
      whose: 'a whisper',
      test: testAlert,
      guard: ({ public_id: id }) => livingReceipt(id, clock.now()),
    },
  )
  owner.mount(
    ['GET', '/api/whisper/:publicId/receipt'],
    {
      isInWholeOnly: true,
      operationId: 'getReceipt',
      summary: 'How often and when a whisper was read, and how it ended',
      description:
        'For the buyer, with the receipt token. It says when, and never who. It can be asked until 24 hours after the end.',
      response: { 200: WhisperReceipt },
    },
    owner.answers(async (receipt) => {
      const shown = await receipts.shown(receipt)
      return () => shown
    }),
  )
  owner.mount(
    ['DELETE', '/api/whisper/:publicId'],
    {
      isInWholeOnly: true,
      operationId: 'destroyWhisper',
      summary: 'Destroy a whisper: the bytes are deleted now, and the receipt says so',
      description:
        'For the buyer, with the receipt token. Nobody can read it any more. Nothing is paid back.',
      response: { 204: NoContent },
    },
    owner.removes(receipts.destroy),
  )
}
