/** The story of an order: what happened to it and when, what its buyer should be told, and what is left to do. */
import { rfc3339 } from '../lib/clock.ts'
import { isReplacement, REPLAY_MS } from './order.ts'
import type { Refund, Sale } from './sales.ts'
import type { ShownOrder } from './showing.ts'
import type { Tombstone } from './tombstones.ts'

/** One thing that happened. `at` is unix milliseconds. */
type Happened = { at: number; event: string; says: string }

export type Story = {
  happened: Happened[]
  /** A sentence or two that the buyer can be sent as they are. */
  tellBuyer: string
  /** What the operator has to do, or null. */
  todo: string | null
}

type Advice = Pick<Story, 'tellBuyer' | 'todo'>

/** The story of an order that is in the store, as it is now. */
export function storyOf(order: ShownOrder, now: number): Story {
  const happened = [...beginnings(order), ...payments(order), ...endings(order, now)]
  return { happened: happened.toSorted((a, b) => a.at - b.at), ...adviceFor(order, now) }
}

/** The story of an order whose row was deleted. */
export function storyOfDeleted(
  { payment_hash: hash, ended, ended_at: at }: Tombstone,
  { sale, refund }: { sale: Sale | null; refund: Refund | null },
): Story {
  const paid =
    sale === null
      ? []
      : [happening(sale.settled_at, 'paid', `It was paid, ${sale.amount_sats} sats.`)]
  const how = { used: 'collected and used', aged: 'paid', dead: 'never paid' }[ended]
  const deleted = happening(at, 'deleted', `Its row was deleted: it was ${how}, and over.`)
  if (refund !== null) {
    const paidBack = happening(refund.refunded_at, 'refunded', paidBackFor(refund.reason))
    const happened = [...paid, deleted, paidBack].toSorted((a, b) => a.at - b.at)
    return { happened, ...REFUNDED }
  }
  return {
    happened: [...paid, deleted],
    tellBuyer: {
      used: 'This purchase was paid, collected and used, and what it bought has ended. Nothing is owed. To go on, buy again with a new key.',
      aged: 'This purchase was paid, and what it bought has ended. If you never got it, tell us and show the preimage of the payment.',
      dead: 'This invoice expired without being paid. If your wallet shows a preimage for it, send us that: it proves the payment.',
    }[ended],
    todo: {
      used: null,
      aged: `Nothing, as a rule. Whether it was ever collected is not known any more. If the buyer proves that it was not, ${sale === null ? 'pay it back' : payBack(hash)}`,
      dead: `Nothing, as a rule. A preimage proves the payment: mayfly order restore ${hash} --product <product> --plan <plan> --preimage-file <file>`,
    }[ended],
  }
}

/** Such an advice ends with its command. */
export const payBack = (hash: string, more = ''): string =>
  `pay it back, and then: mayfly order refund ${hash}${more} --reason <text>`

const paidBackFor = (reason: string | null): string =>
  `The operator recorded that the buyer was paid back${reason ? `: ${reason}` : '.'}`

const REFUNDED: Advice = {
  tellBuyer: 'We paid you back for this purchase. You can buy again with a new key.',
  todo: null,
}

const happening = (at: number, event: string, says: string): Happened => ({ at, event, says })

function beginnings(order: ShownOrder): Happened[] {
  const { created_at: at, restored_at: restoredAt, quote_expires_at: until } = order
  if (restoredAt !== null) {
    return [
      happening(restoredAt, 'restored', 'The operator brought it back: the store had lost it.'),
    ]
  }
  const asked = order.extends_id === null ? 'for it' : `to extend ${order.extends_id}`
  const opened = happening(at, 'opened', `The buyer asked ${asked}.`)
  const quoted = `Its invoice over ${order.amount_sats} sats was made, payable until ${rfc3339(until)}.`
  return [opened, happening(at, 'quoted', quoted)]
}

const LIFE_ENDED = 'What it bought reached the end of its life.'

const SEEN = {
  stream: 'the node reported it',
  lookup: 'the node was asked',
  preimage: 'the buyer proved it',
}

function payments(order: ShownOrder): Happened[] {
  const { settled_at: settledAt, settled_by: by, unfulfilled_at: failedAt } = order
  if (settledAt === null) return []
  const paidAt = failedAt ?? settledAt
  const paid = happening(paidAt, 'paid', `It was paid${by === null ? '' : `: ${SEEN[by]}`}.`)
  // What was restored is owed from its start.
  const hasFailed = order.restored_at === null && (failedAt !== null || !wasProvisioned(order))
  const failed = happening(paidAt, 'unfulfilled', 'It could not be provisioned.')
  const made = happening(settledAt, 'provisioned', provisionedAs(order))
  return [paid, ...(hasFailed ? [failed] : []), ...(wasProvisioned(order) ? [made] : [])]
}

/** Whether it was settled, whatever it is now. */
const wasProvisioned = ({ state, expires_at: expiresAt }: ShownOrder): boolean =>
  state === 'settled' || expiresAt !== null

/** Whether it has extended a capability, whatever it is now. */
const hasExtended = (order: ShownOrder): boolean =>
  wasProvisioned(order) && order.extends_id !== null && order.public_id === null

function provisionedAs(order: ShownOrder): string {
  const { public_id: publicId, extends_id: extendsId } = order
  if (hasExtended(order)) return `${extendsId} was extended.`
  return isReplacement(order)
    ? `${extendsId} could not be extended any more, so a new one was provisioned: ${publicId}.`
    : `It was provisioned as ${publicId}.`
}

function endings(order: ShownOrder, now: number): Happened[] {
  const { state, delivered_at: deliveredAt, sealed_at: sealedAt, expires_at: expiresAt } = order
  const ends: Happened[] = []
  if (state === 'dead') {
    ends.push(happening(order.quote_expires_at, 'expired', 'Its invoice was not paid in time.'))
  }
  if (deliveredAt !== null) {
    const who = order.delivered_by === 'operator' ? 'The operator' : 'The service'
    const did = hasExtended(order) ? 'confirmed the extension' : 'handed out the capability'
    ends.push(happening(deliveredAt, 'delivered', `${who} ${did}.`))
  }
  // What was paid back is sealed by that, unless it was before.
  const isSealing = state !== 'refunded' || order.sealed_by !== null
  if (sealedAt !== null && isSealing && !hasExtended(order)) {
    const why = { use: ': a token was used', age: ': its time was over' }
    const because = order.sealed_by === null ? '' : why[order.sealed_by]
    ends.push(happening(sealedAt, 'sealed', `It is not handed out again${because}.`))
  }
  const refundedAt = order.refunded_at ?? sealedAt
  if (state === 'refunded' && refundedAt !== null) {
    ends.push(happening(refundedAt, 'refunded', paidBackFor(order.refund_reason)))
  }
  if (expiresAt !== null && expiresAt <= now) {
    const end = hasExtended(order) ? 'The time that it added was over.' : LIFE_ENDED
    ends.push(happening(expiresAt, 'ended', end))
  }
  return ends
}

function adviceFor(order: ShownOrder, now: number): Advice {
  const { payment_hash: hash } = order
  switch (order.state) {
    case 'pending':
      return whilePending(order, now)
    case 'dead':
      return {
        tellBuyer:
          'The invoice expired without being paid. If your wallet shows that it paid, repeat the purchase with the preimage or the credential. Otherwise buy again with a new key.',
        todo: null,
      }
    case 'paid_unfulfilled':
      return {
        tellBuyer:
          'Your payment has arrived, and we could not deliver what you bought. Do not pay again: we will deliver it or pay you back.',
        todo: `You owe this. Mend the cause, and then: mayfly order deliver ${hash}. Or ${payBack(hash)}`,
      }
    case 'refunded':
      return REFUNDED
    case 'settled':
      return hasExtended(order) ? whenExtended(order, now) : whenSettled(order, now)
  }
}

function whilePending({ quote_expires_at: until }: ShownOrder, now: number): Advice {
  if (now < until) {
    return {
      tellBuyer: `We have not seen a payment yet. The invoice can be paid until ${rfc3339(until)}. If your wallet says that it is still under way, wait: do not pay twice.`,
      todo: null,
    }
  }
  return {
    tellBuyer:
      'The invoice has expired, and our node has not said yet whether it was paid. Do not pay again. If your wallet shows a preimage, repeat the purchase with it.',
    todo: 'Nothing: the service asks the node until it knows. A week after its end the order counts as unpaid.',
  }
}

/** There is nothing to collect: what the buyer has goes on with its tokens. */
function whenExtended({ extends_id: id, expires_at: end }: ShownOrder, now: number): Advice {
  const until = end === null ? '' : ` until ${rfc3339(end)}`
  return {
    tellBuyer:
      end !== null && end <= now
        ? `It was paid, and extended ${id}${until}. That time is over.`
        : `It was paid, and has extended ${id}${until}. Go on with the tokens that you have: there are no new ones.`,
    todo: null,
  }
}

function whenSettled(order: ShownOrder, now: number): Advice {
  const { delivered_at: deliveredAt, expires_at: expiresAt, payment_hash: hash } = order
  const ended = expiresAt !== null && expiresAt <= now
  if (deliveredAt === null) {
    if (ended || order.seed === null) return neverCollected(hash)
    return { tellBuyer: howToCollect(order), todo: handOver(hash) }
  }
  if (order.delivered_by === 'operator') {
    return {
      tellBuyer: 'We handed it to you ourselves. That was the only copy, so keep it.',
      todo: null,
    }
  }
  if (ended) {
    return {
      tellBuyer: 'It was paid and delivered, and has ended. Buy again with a new key to go on.',
      todo: null,
    }
  }
  if (order.seed === null || deliveredAt + REPLAY_MS <= now) {
    return {
      tellBuyer: `It was paid and delivered at ${rfc3339(deliveredAt)}, and cannot be delivered twice. Look for the answer where the purchase was made; mayfly list shows what the command line saved.`,
      todo: `Nothing, as a rule: only a token that was handed out can have been used. If the buyer never got the answer, ${payBack(hash, ' --settled')}`,
    }
  }
  return {
    tellBuyer: `It was paid and delivered at ${rfc3339(deliveredAt)}. Until its first use, and until ${rfc3339(deliveredAt + REPLAY_MS)}, ${repeatedBy(order)} gets the same answer again.`,
    todo: null,
  }
}

const neverCollected = (hash: string): Advice => ({
  tellBuyer:
    'It was paid, and ended before it was collected. Tell us why you could not collect it.',
  todo: `If that was your fault, ${payBack(hash, ' --settled')}`,
})

const handOver = (hash: string): string =>
  `Nothing if the buyer can do that. A buyer who has paid and cannot prove it: mayfly order deliver ${hash} --print`

function howToCollect(order: ShownOrder): string {
  const { contested, restored_at: restoredAt, extends_id: extendsId } = order
  if (isReplacement(order)) {
    return `${extendsId} could not be extended any more when the payment arrived, so a new one waits for you. Repeat the request with the preimage that your wallet shows (Payment-Preimage), or with the credential.`
  }
  if (restoredAt !== null) {
    return 'It is paid and waits for you. Repeat the request with the Payment or L402 credential that you paid with.'
  }
  return contested === 0
    ? 'It is paid and waits for you. Repeat the same request with the same Idempotency-Key, or poll the order.'
    : 'It is paid and waits for you. Repeat the request with the credential that you paid with, or with its key and the preimage that your wallet shows (Payment-Preimage).'
}

const repeatedBy = (order: ShownOrder): string =>
  order.contested === 0 && !isReplacement(order)
    ? 'the same request with the same key'
    : 'the same request with proof of payment'
