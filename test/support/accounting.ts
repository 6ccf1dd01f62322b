/**
 * Audits a store: what must be true of it while nobody uses it, whatever happened to its processes, and
 * whether it agrees with what its clients were told. Each violation is a sentence.
 */
import { headersJson, keptBytes } from '../../src/catch/kept.ts'
import type { Db, Row } from '../../src/db/db.ts'

/** What the service told its clients. */
export type Told = {
  /** The bodies of the 200 answers, by order. An order may have only one. */
  delivered: Map<string, Set<string>>
  /** The bodies that an inbox accepted with 204, by its public id. */
  stored: Map<string, Set<string>>
  /** The reads of a WHISPER that were sold, requested, and answered with 200, by its public id. */
  reads: Map<string, { sold: number; asked: number; answered: number }>
  /** The number of pings that a monitor accepted with 204, by its public id. */
  pinged: Map<string, number>
  /** The public ids of what owners have asked to destroy. */
  destroyed: Set<string>
}

export function nothingTold(): Told {
  return {
    delivered: new Map(),
    stored: new Map(),
    reads: new Map(),
    pinged: new Map(),
    destroyed: new Set(),
  }
}

type Books = {
  db: Db
  /** The payment hashes of the invoices that are settled at the node. */
  settled: ReadonlySet<string>
  /** The credits that the operator granted, by GATE project. */
  granted?: Record<string, number>
  told?: Told
}

/** All violations. Meanwhile nobody may use the store, and nothing in it may be expired. */
export async function audit({ db, settled, granted = {}, told }: Books): Promise<string[]> {
  const asked = await Promise.all(RULES.map(({ text }) => db.read(text)))
  return [
    ...RULES.flatMap(({ says }, i) => (asked[i] ?? []).map(says)),
    ...(await auditCapabilities(db, told)),
    ...(await auditSettlements(db, settled)),
    ...(await auditExtensions(db)),
    ...(await auditCredits(db, granted)),
    ...(await auditKept(db)),
    ...(told ? await auditTold(db, told) : []),
  ]
}

type Rule = { text: string; says: (row: Row) => string }

/** Every row that a rule finds is a violation. */
const RULES: readonly Rule[] = [
  {
    text: `select public_id from (
        select public_id from catch_inbox union all select public_id from pulse_monitor
        union all select public_id from whisper) sold
      where (select count(*) from purchase_order o
        where o.public_id = sold.public_id and o.state = 'settled') <> 1`,
    says: ({ public_id }) => `capability ${public_id} has not exactly one settled order`,
  },
  {
    text: `select order_id, state from purchase_order
      where (delivered_at is not null or seed is not null or public_id is not null)
        and state <> 'settled'`,
    says: ({ order_id, state }) => `order ${order_id} is ${state}, and yet was provisioned`,
  },
  {
    text: `select order_id from purchase_order
      where state = 'settled' and seed is null and sealed_at is null`,
    says: ({ order_id }) => `order ${order_id} can never be delivered: its seed is gone`,
  },
  {
    text: `select order_id from purchase_order o
      where state = 'settled' and not exists (select 1 from sale s where s.payment_hash = o.payment_hash)`,
    says: ({ order_id }) => `order ${order_id} is settled, and its sale is in no book`,
  },
  {
    text: `select order_id from purchase_order where state = 'paid_unfulfilled'`,
    says: ({ order_id }) => `order ${order_id} was paid for nothing`,
  },
  {
    text: `select public_id from catch_inbox join catch_inbox_use using (number)
      where accepted_request_count > request_limit or stored_bytes > storage_limit_bytes
        or stored_bytes < 0`,
    says: ({ public_id }) => `inbox ${public_id} is beyond its limits`,
  },
  {
    text: `select public_id from catch_inbox join catch_inbox_use i using (number)
      where i.destroyed_at is null and (
        i.stored_bytes <> (
          select coalesce(sum(e.kept_bytes), 0) from catch_event e where e.inbox = i.number)
        or i.accepted_request_count < (
          select coalesce(max(e.sequence), 0) from catch_event e where e.inbox = i.number))`,
    says: ({ public_id }) => `the counters of inbox ${public_id} are not those of its events`,
  },
  {
    text: `select public_id from catch_inbox join catch_inbox_use i using (number)
      where i.destroyed_at is null
      and i.accepted_request_count <> (select count(*) from catch_event e where e.inbox = i.number)`,
    says: ({ public_id }) => `inbox ${public_id} has lost events, or has some twice`,
  },
  {
    text: `select e.inbox from catch_event e
      where not exists (select 1 from catch_inbox i where i.number = e.inbox)`,
    says: ({ inbox }) => `an event of inbox ${inbox} has no inbox`,
  },
  {
    text: `select public_id from pulse_monitor
      where accepted_heartbeat_count > heartbeat_limit or accepted_heartbeat_count < 0`,
    says: ({ public_id }) => `monitor ${public_id} is beyond its limit`,
  },
  {
    text: `select w.public_id from whisper w where w.reads_left <= 0 or not exists (
        select 1 from whisper_ciphertext c where c.order_id = w.order_id)`,
    says: ({ public_id }) => `WHISPER ${public_id} promises reads that it has no bytes for`,
  },
  {
    text: `select c.order_id from whisper_ciphertext c
      where not exists (select 1 from whisper w where w.order_id = c.order_id)
        and not exists (select 1 from whisper_reservation r where r.order_id = c.order_id)`,
    says: ({ order_id }) => `the bytes of order ${order_id} belong to nobody`,
  },
  {
    text: `select r.order_id from whisper_reservation r where not exists (
        select 1 from purchase_order o
        where o.order_id = r.order_id and o.state = 'pending')`,
    says: ({ order_id }) => `order ${order_id} is over, and its bytes are still reserved`,
  },
  {
    text: `select u.part from whisper_unpaid u where u.byte_count <> (
        select coalesce(sum(r.byte_count), 0) from whisper_reservation r where r.part = u.part)`,
    says: ({ part }) => `the unpaid bytes of ${part} are not the sum of its reservations`,
  },
  {
    text: `select r.intent_id from gate_receipt r where (
        select count(*) from gate_intent i
        where i.intent_id = r.intent_id and i.state = 'authorized') <> 1`,
    says: ({ intent_id }) => `the receipt of ${intent_id} has not exactly one authorized intent`,
  },
  {
    text: `select r.intent_id from gate_receipt r
      where r.failed_runs > r.give_backs + case when r.given_back_at is null then 0 else 1 end`,
    says: ({ intent_id }) => `the receipt of ${intent_id} counts more failed runs than give-backs`,
  },
  {
    text: `select i.intent_id from gate_intent i where i.state = 'authorized'
      and not exists (select 1 from gate_receipt r where r.intent_id = i.intent_id)`,
    says: ({ intent_id }) => `intent ${intent_id} is authorized and has no receipt`,
  },
]

/** Every buyer has what was sold, unless its owner destroyed it, or all reads of a WHISPER were requested. */
async function auditCapabilities(db: Db, told: Told | undefined): Promise<string[]> {
  const without = await db.read(
    `select o.order_id, o.product, o.public_id from purchase_order o
     where o.state = 'settled' and o.public_id is not null
       and not exists (select 1 from catch_inbox c where c.public_id = o.public_id)
       and not exists (select 1 from pulse_monitor p where p.public_id = o.public_id)
       and not exists (select 1 from whisper w where w.public_id = o.public_id)`,
  )
  return without.flatMap(({ order_id, product, public_id }) => {
    const reads = product === 'whisper' ? told?.reads.get(String(public_id)) : undefined
    if (reads && reads.asked >= reads.sold) return []
    if (told?.destroyed.has(String(public_id))) return []
    return [`settled order ${order_id} has no ${product} capability`]
  })
}

type Limits = { expiresAt: number; requestLimit?: number; heartbeatLimit?: number }

/** What is left of a capability is its plan and those of the orders that have extended it, each once. */
async function auditExtensions(db: Db): Promise<string[]> {
  const orders = await db.read<
    { public_id: string | null; extends_id: string | null; plan: string; expires_at: number } & Row
  >(
    `select public_id, extends_id, plan, expires_at from purchase_order
     where state = 'settled' and product <> 'whisper'`,
  )
  const sold = new Map<string, Limits>()
  const add = (publicId: string, expiresAt: number, plan: Limits): void => {
    const before = sold.get(publicId)
    sold.set(publicId, {
      expiresAt: (before?.expiresAt ?? 0) + expiresAt,
      requestLimit: (before?.requestLimit ?? 0) + (plan.requestLimit ?? 0),
      heartbeatLimit: (before?.heartbeatLimit ?? 0) + (plan.heartbeatLimit ?? 0),
    })
  }
  for (const { public_id, extends_id, plan: text, expires_at } of orders) {
    const plan = JSON.parse(text) as Limits & { durationSeconds: number }
    if (public_id !== null) add(public_id, expires_at, plan)
    else if (extends_id !== null) add(extends_id, plan.durationSeconds * 1000, plan)
  }
  const held = await db.read<{ public_id: string; expires_at: number; most: number } & Row>(
    `select public_id, expires_at, request_limit as most from catch_inbox join catch_inbox_use using (number) where destroyed_at is null
     union all select public_id, expires_at, heartbeat_limit as most from pulse_monitor`,
  )
  return held.flatMap(({ public_id, expires_at, most }) => {
    const { expiresAt = 0, requestLimit = 0, heartbeatLimit = 0 } = sold.get(public_id) ?? {}
    if (expires_at === expiresAt && most === requestLimit + heartbeatLimit) return []
    return [`${public_id} was not extended once for each paid extension`]
  })
}

/** The node's settled invoices are those of the sold orders. */
async function auditSettlements(db: Db, settled: ReadonlySet<string>): Promise<string[]> {
  const orders = await db.read(
    `select order_id, state, payment_hash from purchase_order where payment_hash is not null`,
  )
  return orders.flatMap(({ order_id, state, payment_hash }) => {
    const isPaid = settled.has(String(payment_hash))
    if (isPaid === (state === 'settled')) return []
    return [`order ${order_id} is ${state}, and its invoice is ${isPaid ? 'paid' : 'not paid'}`]
  })
}

async function auditCredits(db: Db, granted: Record<string, number>): Promise<string[]> {
  const projects = await db.read(
    `select p.project_id, p.credits,
       (select count(*) from gate_receipt r where r.project_id = p.project_id) as receipts
     from gate_project p`,
  )
  return projects.flatMap(({ project_id, credits, receipts }) => {
    const owed = (granted[String(project_id)] ?? 0) - Number(receipts)
    if (credits === owed) return []
    return [`project ${project_id} has ${credits} credits, and should have ${owed}`]
  })
}

/** Each event counts the bytes that are stored of it. */
async function auditKept(db: Db): Promise<string[]> {
  const events = await db.read<
    {
      public_id: string
      sequence: number
      kept_bytes: number
      body_bytes: number
      header_lines: Uint8Array
    } & Row
  >(
    `select public_id, sequence, kept_bytes, body_bytes, path, query, header_lines
     from catch_event join catch_inbox on number = inbox`,
  )
  return events.flatMap((event) => {
    const { public_id, sequence, kept_bytes, body_bytes, path, query } = event
    const headers = (JSON.parse(headersJson(event)) as { name: string; value: string }[]).flatMap(
      ({ name, value }) => [name, value],
    )
    const body = { length: body_bytes }
    const kept = keptBytes({ path: String(path), query: String(query), headers, body })
    return kept === kept_bytes
      ? []
      : [`event ${sequence} of ${public_id} has not counted what is kept of it`]
  })
}

async function auditTold(db: Db, told: Told): Promise<string[]> {
  const wrong: string[] = []
  for (const [orderId, bodies] of told.delivered) {
    if (bodies.size > 1) wrong.push(`order ${orderId} was delivered as ${bodies.size} answers`)
    const [order] = await db.read(
      'select state, delivered_at from purchase_order where order_id = $1',
      orderId,
    )
    if (order?.state !== 'settled' || order.delivered_at === null) {
      wrong.push(`order ${orderId} was delivered, and the store knows nothing of it`)
    }
  }
  for (const [publicId, bodies] of told.stored) {
    const rows = await db.read(
      'select body from catch_event where inbox = (select number from catch_inbox where public_id = $1)',
      publicId,
    )
    const kept = rows.map(({ body }) => new TextDecoder().decode(body as Uint8Array))
    const lost = [...bodies].filter((body) => !kept.includes(body))
    if (lost.length > 0) wrong.push(`inbox ${publicId} has lost ${lost.length} events`)
    if (new Set(kept).size !== kept.length) wrong.push(`inbox ${publicId} has an event twice`)
  }
  for (const [publicId, { sold, asked, answered }] of told.reads) {
    const [row] = await db.read('select reads_left from whisper where public_id = $1', publicId)
    // A whisper that is gone had its last read, because nothing else may delete it here.
    const spent = sold - Number(row?.reads_left ?? 0)
    if (answered > spent)
      wrong.push(`WHISPER ${publicId} gave ${answered} reads and spent ${spent}`)
    // A request whose answer was lost has spent a read. Only these clients have the token.
    if (spent > asked)
      wrong.push(`WHISPER ${publicId} was asked for ${asked} reads and spent ${spent}`)
  }
  for (const [publicId, answered] of told.pinged) {
    const [row] = await db.read(
      'select accepted_heartbeat_count from pulse_monitor where public_id = $1',
      publicId,
    )
    const counted = Number(row?.accepted_heartbeat_count ?? 0)
    if (answered > counted) wrong.push(`monitor ${publicId} has lost ${answered - counted} pings`)
  }
  return wrong
}

/** The payment hashes of the invoices that are settled at the simulator. */
export async function settledBySimulator(db: Db): Promise<ReadonlySet<string>> {
  const rows = await db.read(`select payment_hash from simulator_invoice where state = 'settled'`)
  return new Set(rows.map(({ payment_hash }) => String(payment_hash)))
}
