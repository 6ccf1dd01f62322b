/**
 * Alerts: what owners are told of what happens to what they bought. The rows are an outbox: what happened and
 * who is to be told of it are stored in one unit, and sending comes after. The room knows no product.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { coalesce } from '../db/coalesce.ts'
import type { Db, Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { readPublicUrl } from '../protocol/public-url.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { createDelivery, PER_HOST } from './delivery.ts'
import { createDestinations, newMessageId } from './destinations.ts'
import type { Outbound } from './outbound.ts'
import { type OutboundRules, requireCallable } from './outbound-rules.ts'
import { createSealed, createSend, type Inboxes } from './send.ts'
import {
  type Alert,
  createAlertStore,
  dropOwners,
  insertAlert,
  type Outcome,
  purgeAlerts,
} from './store.ts'

/** Every instance looks this often for what other instances have stored, or for what is due again. */
export const LOOK_EVERY_MS = 1_000
/** How long the owner sees what was sent. */
const KEEP_MS = 24 * 60 * 60 * 1000
/** At a time, because a large purge would block the writer. */
const PURGE_ALERTS = 500
/** How long a stop waits for attempts under way. They are repeated after the next start. */
const LEAVE_MS = 2_000

/**
 * What the way out must keep to for alerts. Nothing of an answer is needed but a test's echo. Attempts have a
 * place before they begin, so only tests ever wait.
 */
export const ALERT_OUTBOUND = {
  host: { concurrent: PER_HOST, waiting: 64 },
  maxAnswerBytes: 16 * 1024,
}

export function createAlerts(deps: {
  db: Db
  secrets: Secrets
  clock: Clock
  log: Log
  rules: OutboundRules
  /** The way out, with ALERT_OUTBOUND; null if the operator has switched it off. */
  out: Outbound | null
  /** Known once CATCH is open; null without it. */
  inboxes: () => Inboxes | null
  onAttempt?: (outcome: Outcome) => void
}) {
  const { db, clock, log, rules, out, inboxes, onAttempt = () => undefined } = deps
  const store = createAlertStore(db)
  const sealed = createSealed(deps.secrets)
  const send = createSend({ out, inboxes, now: clock.now })
  let isClosed = false
  let looking: Promise<void> | null = null
  const wake = coalesce(() => void look())
  const delivery = createDelivery({
    db,
    store,
    sealed,
    send,
    clock,
    log,
    onAttempt,
    onFree: wake,
  })

  /** One look at a time: a wake during a look makes another one. */
  let isWanted = false
  async function look(): Promise<void> {
    if (isClosed || !out) return
    isWanted = true
    looking ??= lookAll().finally(() => {
      looking = null
    })
    await looking
  }

  async function lookAll(): Promise<void> {
    while (isWanted && !isClosed) {
      isWanted = false
      try {
        await delivery.turn()
      } catch (error) {
        log.error({ event: 'alerts.turn_failed', reason: String(error) })
      }
    }
  }

  return {
    /** Whether anything is ever sent. If not, nothing is stored to be sent either. */
    isOn: out !== null,
    destinations: createDestinations({ db, store, sealed, send, clock }),
    inboxes,
    /** A URL that may be a destination, or what is wrong with it. */
    readUrl: (text: string) => readUrl(text, rules),
    /** Statements that tell an owner's destinations of something, for the unit in which it happens. */
    tell: (ownerId: string, alert: Alert): Statement[] =>
      out ? insertAlert(ownerId, newMessageId(), alert) : [],
    /** Statements for the unit that deletes these owners. */
    drop: dropOwners,
    /** Something was stored that may be due. Never throws. */
    wake,
    /** Sends what is due. */
    look,

    /** Deletes what ended long ago. @returns how many were deleted. */
    async purge(now: number): Promise<number> {
      const endedBefore = now - KEEP_MS
      for (let count = 0; ; ) {
        const statements = { gone: purgeAlerts(endedBefore, PURGE_ALERTS) }
        const { gone } = await db.write({ lockKey: 'alert', statements })
        count += gone.length
        if (gone.length < PURGE_ALERTS) return count
      }
    },

    async close(): Promise<void> {
      isClosed = true
      await looking
      await Promise.race([delivery.idle(), delay(LEAVE_MS, undefined, { ref: false })])
      await out?.close()
      await delivery.idle()
    },
  }
}

export type Alerts = ReturnType<typeof createAlerts>

/** Whether the service may call a URL at all is known before its name is resolved. */
function readUrl(text: string, rules: OutboundRules): { url: URL } | { fault: string } {
  const read = readPublicUrl(text, rules.allowed)
  if ('fault' in read) return read
  try {
    requireCallable(read.url, rules)
    return read
  } catch {
    return { fault: 'a URL that this service does not call' }
  }
}
