/** The outbox in the store: what waits, what gives way, who may take it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { createAlerts } from '../../src/alerts/alerts.ts'
import { nextTurn, paceAfter, pauseAfter, ready } from '../../src/alerts/delivery.ts'
import { retryAfterMs } from '../../src/alerts/send.ts'
import type { Alert } from '../../src/alerts/store.ts'
import {
  type AlertRow,
  activate,
  claimDestination,
  createAlertStore,
  type DestinationRow,
  dropOwners,
  insertAlert,
  MAX_WAITING,
  releaseDestination,
} from '../../src/alerts/store.ts'
import { attempt, type Db } from '../../src/db/db.ts'
import type { Log } from '../../src/lib/log.ts'
import type { Secrets } from '../../src/secrets/secrets.ts'
import type { After } from '../support/folder.ts'
import { destination } from '../support/outbox.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'

const NOW = 1_800_000_000_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const OWNER = 'pulse_a'

const anAlert = (replaces = true, occurredAt = NOW): Alert => ({
  type: 'pulse.late',
  occurredAt,
  replaces,
  content: { data: {}, title: 't', text: 'x', isUrgent: false },
})

async function aStore(t: After, destinations = 1, isTested = true): Promise<Db> {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  for (let place = 0; place < destinations; place++) {
    const destination_id = `destination ${place}`
    const statements = {
      one: destination(destination_id, OWNER, place),
      two: isTested ? activate(destination_id) : [],
    }
    await db.write({ lockKey: OWNER, statements })
  }
  return db
}

test('an alert with something for its owner alone says that only to destinations that are private', async (t) => {
  const db = await aStore(t, 2)
  await db.write({
    lockKey: OWNER,
    statements: {
      one: {
        text: `update alert_destination set is_private = 1 where destination_id = 'destination 1'`,
        values: [],
      },
    },
  })
  const { content } = anAlert()
  await tell(db, 'm', { ...anAlert(), privateContent: { ...content, text: 'for you' } })
  await tell(db, 'n')
  const rows = await db.read('select content from alert order by position, destination_id')
  assert.deepEqual(
    rows.map(({ content: text }) => JSON.parse(String(text)).text),
    ['x', 'for you', 'x', 'x'],
  )
})

const tell = (db: Db, id: string, alert = anAlert()) =>
  db.write({ lockKey: OWNER, statements: { told: insertAlert(OWNER, id, alert) } })

const claim = async (db: Db, now = NOW): Promise<DestinationRow | undefined> => {
  const hold = { now, until: now + 30_000 }
  const { rows } = await db.write({
    lockKey: OWNER,
    statements: { rows: claimDestination('destination 0', hold) },
  })
  return rows[0] as DestinationRow | undefined
}

const END = {
  attempts: 0,
  state: 'active',
  not_before: 0,
  day_started_at: 0,
  day_count: 0,
} as const

test('every destination of an owner gets an alert once, in order, and at most 20 wait, the newest', async (t) => {
  const db = await aStore(t, 3)
  for (let i = 1; i <= MAX_WAITING + 5; i++) await tell(db, `msg_${i}`)
  const store = createAlertStore(db)
  for (const place of [0, 1, 2]) {
    const waiting = await store.waiting(`destination ${place}`)
    assert.deepEqual(
      waiting.map(({ message_id }) => message_id),
      Array.from({ length: MAX_WAITING }, (_, i) => `msg_${i + 6}`),
    )
  }
})

test('an alert that comes while another one is sent is not forgotten', async (t) => {
  const db = await aStore(t)
  await tell(db, 'msg_1')
  const held = await claim(db)
  assert.ok(held)
  await tell(db, 'msg_2')
  const done = { ...END, done_position: 1, nextAt: NOW + MINUTE }
  await db.write({ lockKey: OWNER, statements: { done: releaseDestination(held, done) } })
  const [row] = await createAlertStore(db).ofOwner(OWNER)
  assert.equal(row?.due_at, NOW + MINUTE)
})

test('one instance at a time has a destination, and the next one once the claim is over', async (t) => {
  const db = await aStore(t)
  await tell(db, 'msg_1')
  const first = await claim(db)
  assert.ok(first)
  assert.equal(await claim(db), undefined)
  assert.ok(await claim(db, NOW + 30_000))
  const late = { ...END, done_position: 1, nextAt: NOW }
  const release = db.write({
    lockKey: OWNER,
    statements: { done: releaseDestination(first, late) },
  })
  assert.deepEqual(await attempt(release), { refused: 'done' })
})

test('a destination that was not tested is told nothing', async (t) => {
  const db = await aStore(t, 2, false)
  await tell(db, 'msg_1')
  assert.deepEqual(await db.read('select 1 as one from alert'), [])
})

test('an owner who is gone is told nothing, and nothing of theirs is left', async (t) => {
  const db = await aStore(t, 2)
  await tell(db, 'msg_0')
  await db.write({ lockKey: OWNER, statements: { gone: dropOwners([OWNER]) } })
  await tell(db, 'msg_1')
  const rows = await db.read('select 1 as one from alert union all select 1 from alert_destination')
  assert.deepEqual(rows, [])
})

test('what must wait for its time is due then, and what comes after it waits with it', async (t) => {
  const db = await aStore(t)
  const dueAt = async () => (await createAlertStore(db).ofOwner(OWNER))[0]?.due_at
  await tell(db, 'msg_1', { ...anAlert(), notBefore: NOW + 90_000 })
  await tell(db, 'msg_2', { ...anAlert(), notBefore: NOW + MINUTE })
  await tell(db, 'msg_3', anAlert())
  assert.equal(await dueAt(), NOW + 90_000)
  const waiting = await createAlertStore(db).waiting('destination 0')
  const ids = (now: number) => ready(waiting, now).map(({ message_id }) => message_id)
  assert.deepEqual(ids(NOW + 89_999), [])
  assert.deepEqual(ids(NOW + 90_000), ['msg_1', 'msg_2', 'msg_3'])
})

test('the first of many alerts that wait for their time stay, so that it comes, and so do the newest', async (t) => {
  const db = await aStore(t, 2)
  const count = MAX_WAITING + 30
  for (let i = 1; i <= count; i++) {
    await tell(db, `msg_${i}`, { ...anAlert(), notBefore: NOW + MINUTE })
  }
  const firsts = Array.from({ length: MAX_WAITING - 1 }, (_, i) => `msg_${i + 1}`)
  for (const place of [0, 1]) {
    const waiting = await createAlertStore(db).waiting(`destination ${place}`)
    assert.deepEqual(
      waiting.map(({ message_id }) => message_id),
      [...firsts, `msg_${count}`],
    )
  }
})

test('numbers that the store knows are in the content, as numbers in the data', async (t) => {
  const db = await aStore(t)
  const counts = { places: 'select count(*) from alert_destination where owner_id = $1' }
  const text = 'It has {{places}} of {{places}}.'
  const content = { data: { count: '{{places}}' }, title: 't', text, isUrgent: false }
  await tell(db, 'msg_1', { ...anAlert(), counts, content })
  const [row] = await createAlertStore(db).waiting('destination 0')
  assert.deepEqual(JSON.parse(row?.content ?? ''), {
    ...content,
    data: { count: 1 },
    text: 'It has 1 of 1.',
  })
})

describe('the pace of a destination', () => {
  const waits = (...kinds: ('state' | 'warning')[]) =>
    kinds.map(
      (kind, i) =>
        ({
          position: i + 1,
          occurred_at: NOW,
          attempts: 0,
          not_before: 0,
          replaces: Number(kind === 'state'),
        }) as AlertRow,
    )

  test('what the pace held back is told by the last state, and by every warning', () => {
    const waiting = waits('state', 'warning', 'state', 'state', 'warning')
    const turn = nextTurn({ not_before: NOW + 1 }, waiting)
    assert.deepEqual([turn?.alert.position, turn?.dropped], [2, [1, 3]])
  })

  test('what nothing held back is told one by one, in order', () => {
    const turn = nextTurn({ not_before: NOW }, waits('state', 'state'))
    assert.deepEqual([turn?.alert.position, turn?.dropped], [1, []])
  })

  test('what waited for its own time was not held back by the pace', () => {
    const [first, second] = waits('state', 'state').map((one) => ({ ...one, not_before: NOW + 90 }))
    const turn = nextTurn({ not_before: NOW + 90 }, [first, second] as AlertRow[])
    assert.deepEqual([turn?.alert.position, turn?.dropped], [1, []])
  })

  test('a message that is repeated stays the same, whatever came after it', () => {
    const [first, ...rest] = waits('state', 'state')
    const tried = { ...first, attempts: 1 } as AlertRow
    const turn = nextTurn({ not_before: NOW + 1 }, [tried, ...rest])
    assert.deepEqual([turn?.alert.position, turn?.dropped], [1, []])
  })

  test('a destination is told once a minute, and 60 times in a day that begins with the first', () => {
    let pace = { not_before: 0, day_started_at: 0, day_count: 0 }
    for (let i = 0; i < 59; i++) {
      pace = paceAfter(pace, NOW + i * MINUTE)
      assert.equal(pace.not_before, NOW + (i + 1) * MINUTE)
    }
    pace = paceAfter(pace, NOW + HOUR)
    assert.equal(pace.not_before, NOW + 24 * HOUR)
    assert.deepEqual(paceAfter(pace, pace.not_before), {
      day_started_at: NOW + 24 * HOUR,
      day_count: 1,
      not_before: NOW + 24 * HOUR + MINUTE,
    })
  })
})

test('the pauses between attempts are those of Standard Webhooks, and then nothing is tried again', () => {
  const seconds = Array.from({ length: 10 }, (_, i) => pauseAfter(i + 1, null)).map(
    (pause) => pause && pause / 1000,
  )
  const hours = [2, 5, 10, 14, 20, 24].map((hour) => hour * 3600)
  assert.deepEqual(seconds, [5, 300, 1800, ...hours, null])
})

test('Retry-After is seconds or a date, and anything else is nothing', () => {
  assert.equal(retryAfterMs('120', NOW), 120_000)
  assert.equal(retryAfterMs(new Date(NOW + 5_000).toUTCString(), NOW), 5_000)
  assert.equal(retryAfterMs(new Date(NOW - 5_000).toUTCString(), NOW), 0)
  for (const value of ['', '-1', '1e9', 'soon', '9'.repeat(30), undefined, ['1']]) {
    assert.equal(retryAfterMs(value, NOW), null, String(value))
  }
})

test('a purge deletes all that ended more than a day ago, however much it is', async (t) => {
  const db = await aStore(t)
  const ended = `insert into alert
    (destination_id, position, message_id, type, occurred_at, replaces, content, coalesced, attempts, done_at)
    values ('destination 0', $1, 'msg', 'pulse.late', $2, 1, '{}', 0, 1, $2)`
  const statements = Array.from({ length: 1_200 }, (_, i) => ({ text: ended, values: [i, NOW] }))
  await db.write({ lockKey: OWNER, statements: { statements } })
  const alerts = itsAlerts(db)
  assert.equal(await alerts.purge(NOW + 24 * HOUR - 1), 0)
  assert.equal(await alerts.purge(NOW + 24 * HOUR), 1_200)
})

const itsAlerts = (db: Db) =>
  createAlerts({
    db,
    clock: { now: () => NOW },
    out: null,
    inboxes: () => null,
    rules: { allowed: new Set() },
    secrets: { keys: () => [randomBytes(32)] } as unknown as Secrets,
    log: {} as Log,
  })
