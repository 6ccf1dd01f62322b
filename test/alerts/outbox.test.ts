/** What waits for a destination: its content, its time and its turn. The statements are in store.test.ts. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { createAlerts } from '../../src/alerts/alerts.ts'
import { nextTurn, paceAfter, pauseAfter, ready } from '../../src/alerts/delivery.ts'
import type { Outbound } from '../../src/alerts/outbound.ts'
import { retryAfterMs } from '../../src/alerts/send.ts'
import { type AlertRow, insertAlert, keepDestination } from '../../src/alerts/store.ts'
import type { Log } from '../../src/lib/log.ts'
import type { Secrets } from '../../src/secrets/secrets.ts'
import { anAlert, aStore, MINUTE, NOW } from '../support/outbox.ts'

const HOUR = 60 * MINUTE

test('an alert with something for its owner alone says that only to destinations that are private', async (t) => {
  const { run, add, alerts } = await aStore(t)
  await add('a 0', 'a 1')
  await run(keepDestination('a 1', true))
  const { content } = anAlert()
  const privateContent = { ...content, text: 'for you' }
  await run(
    ...insertAlert('a', 'm', { ...anAlert(), privateContent }),
    ...insertAlert('a', 'n', anAlert()),
  )
  const texts = async (id: string) => (await alerts(id)).map((one) => JSON.parse(one.content).text)
  assert.deepEqual(
    [await texts('a 0'), await texts('a 1')],
    [
      ['x', 'x'],
      ['for you', 'x'],
    ],
  )
})

test('what must wait for its time is due then, and what comes after it waits with it', async (t) => {
  const { run, add, dueAt, store } = await aStore(t)
  await add('a 0')
  await run(
    ...insertAlert('a', 'msg_1', { ...anAlert(), notBefore: NOW + 90_000 }),
    ...insertAlert('a', 'msg_2', { ...anAlert(), notBefore: NOW + MINUTE }),
    ...insertAlert('a', 'msg_3', anAlert()),
  )
  assert.equal((await dueAt())['a 0'], NOW + 90_000)
  const waiting = await store.waiting('a 0')
  const ids = (now: number) => ready(waiting, now).map(({ message_id }) => message_id)
  assert.deepEqual(ids(NOW + 89_999), [])
  assert.deepEqual(ids(NOW + 90_000), ['msg_1', 'msg_2', 'msg_3'])
})

test('numbers that the store knows are in the content, as numbers in the data', async (t) => {
  const { run, add, store } = await aStore(t)
  await add('a 0')
  const counts = { places: 'select count(*) from alert_destination where owner_id = $1' }
  const text = 'It has {{places}} of {{places}}.'
  const content = { data: { count: '{{places}}' }, title: 't', text, isUrgent: false }
  await run(...insertAlert('a', 'msg_1', { ...anAlert(), counts, content }))
  const [row] = await store.waiting('a 0')
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

/** What alerts need besides a store. Nothing is sent. */
const OFF = {
  clock: { now: () => NOW },
  out: null,
  inboxes: () => null,
  rules: { allowed: new Set<string>() },
  secrets: { keys: () => [randomBytes(32)] } as unknown as Secrets,
  log: {} as Log,
}

test('a stop lets the look under way begin its attempts, and waits for them before the way out is shut', async (t) => {
  const { db, run, add } = await aStore(t)
  await add('a 0')
  await run(...insertAlert('a', 'msg_1', anAlert()))
  const ends: string[] = []
  const out: Outbound = {
    send: () => assert.fail('no secret opens the destination'),
    close: async () => void ends.push('the way out'),
  }
  const onAttempt = (): void => void ends.push('the attempt')
  const alerts = createAlerts({ ...OFF, db, out, onAttempt })
  void alerts.look()
  await alerts.close()
  assert.deepEqual(ends, ['the attempt', 'the way out'])
})

test('a purge deletes all that ended more than a day ago, however much it is', async (t) => {
  const { db, run, add } = await aStore(t)
  await add('a 0')
  const ended = `insert into alert
    (destination_id, position, message_id, type, occurred_at, replaces, content, attempts, done_at)
    values ('a 0', $1, 'msg', 'pulse.late', $2, 1, '{}', 1, $2)`
  await run(...Array.from({ length: 1_200 }, (_, i) => ({ text: ended, values: [i, NOW] })))
  const alerts = createAlerts({ ...OFF, db })
  assert.equal(await alerts.purge(NOW + 24 * HOUR - 1), 0)
  assert.equal(await alerts.purge(NOW + 24 * HOUR), 1_200)
})
