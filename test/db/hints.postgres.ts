import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Client } from 'pg'
import type { Hints } from '../../src/db/hints.ts'
import { topicHash } from '../../src/db/postgres/hint-message.ts'
import { openPostgresHints } from '../../src/db/postgres/hints.ts'
import { hintsContract } from '../contract/hints.ts'
import type { After } from '../support/folder.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

hintsContract('PostgreSQL', async (t) => (await anInstance(t, await aPostgresDatabase())).hints)

test('the listeners of one instance hear what another tells', async (t) => {
  const url = await aPostgresDatabase()
  const [a, b, c] = await instances(t, url, 3)
  const heard: string[] = []
  b.hints.listen('catch_x', () => void heard.push('b'))
  c.hints.listen('catch_x', () => void heard.push('c'))
  c.hints.listen('catch_y', () => assert.fail('nobody told of it'))
  await until('both hear of it', () => {
    a.hints.notify('catch_x')
    return ['b', 'c'].every((who) => heard.filter((other) => other === who).length > 1)
  })
})

test('a topic goes out once for many changes, and not at all where nobody listens', async (t) => {
  const url = await aPostgresDatabase()
  const [a, b] = await instances(t, url, 2)
  const seen = await spy(t, url)
  let heard = 0
  b.hints.listen('catch_x', () => heard++)
  await until('a knows who listens', () => {
    a.hints.notify('catch_x')
    return heard > 1
  })
  b.hints.listen('catch_mark', () => undefined)
  await until('what was told so far has gone out', () => {
    a.hints.notify('catch_mark')
    return topicsOf(seen).includes(topicHash('catch_mark'))
  })
  const before = topicsOf(seen).length
  for (let i = 0; i < 1_000; i++) a.hints.notify('catch_x')
  for (let i = 0; i < 1_000; i++) a.hints.notify(`catch_nobody_${i}`)
  b.hints.listen('catch_last', () => heard++)
  await until('the last one is told', () => {
    a.hints.notify('catch_last')
    return topicsOf(seen).includes(topicHash('catch_last'))
  })
  const told = topicsOf(seen).slice(before)
  assert.equal(told.filter((topic) => topic === topicHash('catch_x')).length, 1)
  // Topics share a kind with others here and there.
  assert.ok(told.length < 20, `${told.length}`)
  assert.ok(!JSON.stringify(seen).includes('catch_'), 'a payload names a resource')
})

test('a listener that came before the others knew of it looks once more', async (t) => {
  const [a] = await instances(t, await aPostgresDatabase(), 1)
  let heard = 0
  a.hints.listen('catch_x', () => heard++)
  await until('it hears without being told', () => heard === 1)
})

test('a cut line is mended, and everybody looks at what may have been missed', async (t) => {
  const url = await aPostgresDatabase()
  const [a, b] = await instances(t, url, 2)
  let heard = 0
  b.hints.listen('catch_x', () => heard++)
  await until('the line works', () => {
    a.hints.notify('catch_x')
    return heard > 1
  })
  await cut(url)
  await until('both say that it was lost', () => a.lost.length === 1 && b.lost.length === 1)
  await until('both say that it is back', () => a.back === 1 && b.back === 1)
  const before = heard
  await until('it works again', () => {
    a.hints.notify('catch_x')
    return heard > before + 1
  })
  assert.deepEqual([a.lost.length, b.lost.length], [1, 1])
})

test('a listener looks again at what it may have missed while its own connection was lost', async (t) => {
  const url = await aPostgresDatabase()
  const listener = await anInstance(t, url)
  let heard = 0
  listener.hints.listen('catch_x', () => heard++)
  await until('the first look', () => heard === 1)
  await cut(url)
  await until('it looks again', () => heard > 1)
})

test('a listener looks again at what another instance could not announce while that one had lost its connection', async (t) => {
  const url = await aPostgresDatabase()
  const teller = await anInstance(t, url)
  const ofTeller = await pids(url)
  const listener = await anInstance(t, url)
  let heard = 0
  listener.hints.listen('catch_x', () => heard++)
  await until('the first look', () => heard === 1)
  await cut(url, ofTeller)
  await until('the teller is back', () => teller.back === 1)
  await until('the listener looks again', () => heard === 2)
  assert.equal(listener.lost.length, 0)
})

test('an instance that starts without PostgreSQL has hints of its own, and says no password', async (t) => {
  const nowhere = 'postgres://mayfly:mayfly@127.0.0.1:1/none'
  const { hints, lost } = await anInstance(t, nowhere)
  let heard = 0
  hints.listen('catch_x', () => heard++)
  hints.notify('catch_x')
  assert.equal(heard, 1)
  assert.equal(lost.length, 1)
  assert.ok(!lost.join().includes('mayfly:mayfly'))
})

type Instance = { hints: Hints; lost: string[]; back: number }

async function anInstance(t: After, url: string): Promise<Instance> {
  const lost: string[] = []
  const instance = { lost, back: 0 }
  const hints = await openPostgresHints(url, {
    onLost: (reason) => lost.push(reason),
    onBack: () => void instance.back++,
  })
  t.after(() => hints.close())
  return Object.assign(instance, { hints })
}

function instances(t: After, url: string, n: 1): Promise<[Instance]>
function instances(t: After, url: string, n: 2): Promise<[Instance, Instance]>
function instances(t: After, url: string, n: 3): Promise<[Instance, Instance, Instance]>
function instances(t: After, url: string, n: number): Promise<Instance[]> {
  return Promise.all(Array.from({ length: n }, () => anInstance(t, url)))
}

/** Every payload from now on, parsed. */
async function spy(t: After, url: string): Promise<{ topics?: string[] }[]> {
  const client = new Client(url)
  await client.connect()
  t.after(() => client.end())
  const seen: { topics?: string[] }[] = []
  client.on('notification', ({ payload = '' }) => seen.push(JSON.parse(payload)))
  await client.query('listen mayfly_hints')
  return seen
}

const topicsOf = (seen: { topics?: string[] }[]): string[] =>
  seen.flatMap(({ topics = [] }) => topics)

/** The processes of PostgreSQL that serve the connections of the hints. */
const pids = (url: string): Promise<number[]> =>
  asAdministrator(url, async (client) => {
    const { rows } = await client.query(
      `select pid from pg_stat_activity where application_name = 'mayfly hints'`,
    )
    return rows.map(({ pid }) => pid)
  })

/** Ends connections of the hints as an administrator does, by default all. */
const cut = async (url: string, some?: number[]): Promise<void> => {
  const all = some ?? (await pids(url))
  await asAdministrator(url, (client) =>
    client.query('select pg_terminate_backend(pid) from unnest($1::int[]) as pid', [all]),
  )
}

async function asAdministrator<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(url)
  await client.connect()
  try {
    return await work(client)
  } finally {
    const ended = once(client, 'end')
    await client.end()
    await ended
  }
}
