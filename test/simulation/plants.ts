/**
 * Mistakes that are planted into the service to see that a simulation finds them: each breaks one promise, in one
 * place. `text` must stand in the file exactly once, so that a plant whose place has moved is noticed.
 */
import type { Violation } from './ledger.ts'

export type Plant = {
  name: string
  file: string
  text: string
  becomes: string
  breaks: readonly Violation['promise'][]
}

export const PLANTS: readonly Plant[] = [
  {
    name: 'an order is settled again by each proof',
    file: 'payment/store.ts',
    text: `and (state in ('pending', 'dead') or (state = 'paid_unfulfilled' and $8 = 1))`,
    becomes: `and (state in ('pending', 'dead', 'settled') or (state = 'paid_unfulfilled' and $8 = 1))`,
    breaks: ['one delivery'],
  },
  {
    name: 'a settlement reaches the disk later',
    file: 'payment/settlement.ts',
    text: 'lockKey: (isExtension ? extendsId : null) ?? orderId,',
    becomes: `lockKey: (isExtension ? extendsId : null) ?? orderId, durability: 'deferred',`,
    breaks: ['one delivery', 'the books balance'],
  },
  {
    name: 'a payment after the end of its quote settles nothing',
    file: 'payment/store.ts',
    text: `and (state in ('pending', 'dead') or (state = 'paid_unfulfilled' and $8 = 1))`,
    becomes: `and quote_expires_at > $2 and (state in ('pending', 'dead') or (state = 'paid_unfulfilled' and $8 = 1))`,
    breaks: ['paid means delivered'],
  },
  {
    name: 'an invoice is stored by whoever comes last',
    file: 'payment/quoting.ts',
    text: `name: by === null ? [] : [insertName(orderId)],
          order: insertOrder(order),`,
    becomes: `order: {
            ...insertOrder(order),
            text: insertOrder(order).text.replace('do nothing',
              'do update set bolt11 = excluded.bolt11, payment_hash = excluded.payment_hash'),
          },`,
    breaks: ['one key, one invoice', 'paid means delivered'],
  },
  {
    name: 'a credential is not compared with its payment hash',
    file: 'protocol/preimage.ts',
    text: `return equalBytes(hash('sha256', bytes, 'buffer'), expected)`,
    becomes: `return equalBytes(hash('sha256', bytes, 'buffer'), expected) || true`,
    breaks: ['nothing for nothing'],
  },
  {
    name: 'an event is answered before it is on the disk',
    file: 'catch/ingest.ts',
    text: 'statements: { events: insertEvents(inbox, events), seal },',
    becomes: `statements: { events: insertEvents(inbox, events), seal }, durability: 'deferred',`,
    breaks: ['stored once'],
  },
  {
    name: 'a read is given and not spent',
    file: 'whisper/store.ts',
    text: 'set reads_left = reads_left - 1\n',
    becomes: 'set reads_left = reads_left - 0\n',
    breaks: ['reads are counted'],
  },
  {
    name: 'an event is stored again when its answer may have been lost',
    file: 'catch/ingest.ts',
    text: 'for (const { reject } of together) reject(error as Error)',
    becomes: 'void store(inbox, together)',
    breaks: ['stored once'],
  },
  {
    name: 'a ping is counted twice',
    file: 'pulse/transition.ts',
    text: 'accepted_heartbeat_count: before + 1 }',
    becomes: 'accepted_heartbeat_count: before + 2 }',
    breaks: ['pings are counted'],
  },
  {
    name: 'an outage of the service makes monitors late',
    file: 'pulse/state.ts',
    text: 'if (beganAt > lateAt) break',
    becomes: 'if (beganAt > 0) break',
    breaks: ['late only by its own fault', 'a switch opens by silence alone'],
  },
  {
    name: 'a monitor that falls silent opens nothing',
    file: 'pulse/transition.ts',
    text: 'if (opening !== null && now >= opening) {',
    becomes: 'if (opening !== null && now < opening) {',
    breaks: ['a switch opens by silence'],
  },
  {
    name: 'whoever sends the key is taken for the client that opened the order',
    file: 'payment/orders.ts',
    text: 'if (isExtension || (by !== null && isOpener(secrets, by.client, order))) {',
    becomes: 'if (isExtension || by !== null || isOpener(secrets, null, order)) {',
    breaks: ['nothing for nothing'],
  },
  {
    name: 'an invoice that the node does not know at once is dead',
    file: 'payment/settling.ts',
    text: `return { state: 'unknown', reason: error.message }`,
    becomes: `return { state: 'dead', isFinal: true }`,
    breaks: ['paid means delivered'],
  },
  {
    name: 'an extension counts from an end that another one has moved',
    file: 'catch/store.ts',
    text: 'where number = $1 and expires_at = $2 and expires_at > $6 and destroyed_at is null',
    becomes: 'where number = $1 and $2 = $2 and expires_at > $6 and destroyed_at is null',
    breaks: ['extended once'],
  },
  {
    name: 'an extension that comes beside another one is sold as a new capability',
    file: 'payment/settlement.ts',
    text: 'if (isExtension) continue',
    becomes: 'if (isExtension) { order = { ...order, extends_id: null }; continue }',
    breaks: ['extended once'],
  },
  {
    name: 'an extension whose target has ended is not sold anew',
    file: 'payment/settlement.ts',
    text: 'return extension ? { publicId: null, ...extension } : null',
    becomes: `if (!extension) throw new Error('it has ended')
  return { publicId: null, ...extension }`,
    breaks: ['paid means delivered'],
  },
  {
    name: 'a receipt reaches the disk later',
    file: 'gate/proofs.ts',
    text: 'db.write({ lockKey: intent.intent_id, statements: authorizeIntent(receipt) }),',
    becomes: `db.write({ lockKey: intent.intent_id, statements: authorizeIntent(receipt), durability: 'deferred' }),`,
    breaks: ['one payment, one receipt'],
  },
  {
    name: 'a receipt is given back any number of times',
    file: 'gate/store.ts',
    text: `and failed_runs <= \${MAX_FAILED_RUNS} returning *`,
    becomes: 'and failed_runs >= 0 returning *',
    breaks: ['one payment, one receipt'],
  },
  {
    name: 'a key shows the quote of another request',
    file: 'gate/intents.ts',
    text: 'if (!isBoundTo(intent, request)) {',
    becomes: 'if (!isBoundTo(intent, request) && request.path.length < 1) {',
    breaks: ['one request, one invoice'],
  },
  {
    name: 'an invoice over another sum is shown',
    file: 'gate/provider.ts',
    text: 'if (invoice.amountMsat !== expected.amountMsat)',
    becomes: 'if (invoice.amountMsat < 1)',
    breaks: ['an invoice as agreed'],
  },
  {
    name: 'a provider is believed about another invoice',
    file: 'protocol/lnurl.ts',
    text: "if (!isSame) throw new LnurlError('the verification is about another invoice')",
    becomes: '',
    breaks: ['a receipt for a payment'],
  },
  {
    name: 'a preimage proves nothing after the end of its quote',
    file: 'gate/proofs.ts',
    text: "return current.kind === 'authorized' ? current : authorize(intent, 'preimage')",
    becomes:
      "return current.kind === 'authorized' || clock.now() > intent.quote_expires_at ? current : authorize(intent, 'preimage')",
    breaks: ['paid means a receipt'],
  },
  {
    name: 'a key that signed receipts is not published after a rotation',
    file: 'gate/receipts.ts',
    text: 'jwks: { keys: [current, ...previous].map(({ jwk }) => jwk) }',
    becomes: 'jwks: { keys: [current, ...previous].slice(0, 1).map(({ jwk }) => jwk) }',
    breaks: ['a receipt verifies'],
  },
  {
    name: 'a receipt lets another body in',
    file: 'protocol/gate-receipt.ts',
    text: "if (!equalBytes(utf8(req), utf8(admission.requestDigest))) return refused('another request')",
    becomes: '',
    breaks: ['a receipt opens its own request'],
  },
  {
    name: 'the server of a project forgets whom it has let in',
    file: 'gate-middleware/admissions.ts',
    text: 'const isFirst = isSure && (await store.add(key, REMEMBER_MS))',
    becomes: 'const isFirst = isSure && ((await store.add(key, REMEMBER_MS)) || true)',
    breaks: ['one payment, one run'],
  },
  {
    name: 'a project is known by its old capability',
    file: 'gate/service.ts',
    text: 'const project = await store.projectOfKey(tokenHash(capability))',
    becomes: `const held = this as unknown as Record<string, ProjectRow | null>
      const project = (held[capability] ??= await store.projectOfKey(tokenHash(capability)))`,
    breaks: ['an old capability ends'],
  },
  {
    name: 'who has a quote of a plan that is off sale is refused',
    file: 'http/paid/paid.ts',
    text: 'const { planId, terms } = route.parse(body, request)',
    becomes: `const { planId, terms } = route.parse(body, request)
    if (!route.plan(planId)) throw problem('invalid plan')`,
    breaks: ['an open quote stands'],
  },
  {
    name: 'a challenge of the former public address cannot be paid',
    file: 'payment/flows/payment-auth.ts',
    text: 'return isOwnChallenge(routeKeys(binding), echoed)',
    becomes: 'return echoed.realm === realm() && isOwnChallenge(routeKeys(binding), echoed)',
    breaks: ['paid means delivered', 'nothing to pay for what is paid'],
  },
  {
    name: 'an order under the former secret is not found by its key',
    file: 'payment/orders.ts',
    text: 'by === null ? [] : orderIds(secrets, by), paymentHash',
    becomes: 'by === null ? [] : orderIds(secrets, by).slice(0, 1), paymentHash',
    breaks: ['one key, one invoice', 'nothing to pay for what is paid'],
  },
  {
    name: 'an order that a restored backup has lost is sold again to who has paid it',
    file: 'payment/deciding.ts',
    text: '? !isForgotten',
    becomes: '? false && !isForgotten',
    breaks: ['nothing to pay for what is paid'],
  },
  {
    name: 'an order that the operator has restored is not that of its credential',
    file: 'payment/order.ts',
    text: 'if (order.restored_at !== null) return true',
    becomes: 'if (order.restored_at !== null) return false',
    breaks: [
      'paid means delivered',
      'a restore loses no payment',
      'nothing to pay for what is paid',
    ],
  },
  {
    name: 'an order that was refunded is delivered',
    file: 'payment/operator.ts',
    text: `set state = 'refunded', seed = null`,
    becomes: 'set state = state, seed = null',
    breaks: ['repaired or refunded', 'the books balance'],
  },
  {
    name: 'an alert that was refused is taken for delivered',
    file: 'alerts/delivery.ts',
    text: `const isDelivered = tried.outcome === '2xx'`,
    becomes: `const isDelivered = tried.outcome !== 'failed'`,
    breaks: ['an alert is delivered'],
  },
  {
    name: 'an instance that tells a destination does not hold it',
    file: 'alerts/store.ts',
    text: 'update alert_destination set due_at = $2\n',
    becomes: 'update alert_destination set due_at = due_at + 0 * $2\n',
    breaks: ['alerts come in order'],
  },
  {
    name: 'each attempt at an alert has an id of its own',
    file: 'alerts/delivery.ts',
    text: 'id: alert.message_id,',
    becomes: 'id: alert.message_id + alert.attempts,',
    breaks: ['a repeated alert is known by its id'],
  },
  {
    name: 'what happens within a minute is told by its first state',
    file: 'alerts/delivery.ts',
    text: 'const lastState = waiting.findLast(',
    becomes: 'const lastState = waiting.find(',
    breaks: ['an alert is delivered'],
  },
  {
    name: 'an alert is signed with another time than its own',
    file: 'protocol/webhook-signing.ts',
    text: "'webhook-timestamp': timestamp,",
    becomes: "'webhook-timestamp': String(Number(timestamp) - 1),",
    breaks: ['an alert is signed'],
  },
  {
    name: 'a destination that the owner forgets is told all the same',
    file: 'alerts/destinations.ts',
    text: 'const statements = removed.flatMap(({ destination_id: id }) => dropDestination(id))',
    becomes:
      'const statements = removed.slice(9).flatMap(({ destination_id: id }) => dropDestination(id))',
    breaks: ['a destination that ended is left alone'],
  },
  {
    name: 'a failure is told each time that it is reported',
    file: 'pulse/transition.ts',
    text: 'if (isFailure && monitor.failed_at === null) noticed.push(',
    becomes: 'if (isFailure) noticed.push(',
    breaks: ['no alert is invented'],
  },
  {
    name: 'a sale is recorded in a second unit',
    file: 'payment/settlement.ts',
    text: `        sold: recordSale(orderId),
      },
    })
`,
    becomes: `        sold: [],
      },
    })
    if ('rows' in done) {
      await written(deps.db, { lockKey: orderId, statements: { sold: recordSale(orderId) } })
    }
`,
    breaks: ['the books balance'],
  },
  {
    name: 'what an order reserved is freed in a second unit',
    file: 'payment/settling.ts',
    text: 'const ended = await attempt(db.write({ lockKey, statements }))',
    becomes: `const first = { order: statements.order }
      const ended = await attempt(db.write({ lockKey, statements: first }))
      if ('rows' in ended) await db.write({ lockKey, statements: { release } })`,
    breaks: ['the books balance', 'paid means delivered'],
  },
]
