import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { Client } from 'pg'
import type { Hints } from '../../src/db/hints.ts'
import { openPostgresHints, topicHash } from '../../src/db/postgres/hints.ts'
import { hintsContract } from '../contract/hints.ts'
import type { After } from '../support/folder.ts'
import { countLeftovers } from '../support/leftovers.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { serve } from '../support/serving.ts'
import { until } from '../support/until.ts'

hintsContract('PostgreSQL', async (t) => (await anInstance(t, await aPostgresDatabase())).hints)

test('the listeners of one instance hear what another tells', async (t) => {
  const url = await aPostgresDatabase()
  const [a, b, c] = await instances(t, url, 3)
  const heard: string[] = []
  b.hints.listen('catch_x', () => void heard.push('b'))
  c.hints.listen('catch_x', () => void heard.push('c'))
  await until('both hear of it', () => {
    a.hints.notify('catch_x')
    return ['b', 'c'].every((who) => heard.filter((other) => other === who).length > 1)
  })
  let [last, own, end] = [0, 0, 0]
  a.hints.listen('catch_z', () => own++)
  a.hints.listen('catch_end', () => end++)
  b.hints.listen('catch_y', () => assert.fail('nobody told of it'))
  b.hints.listen('catch_z', () => last++)
  a.hints.notify('catch_z')
  await until('b hears the last one', () => last === 1)
  c.hints.notify('catch_end')
  await until('a hears what came after its own', () => end === 1)
  assert.equal(own, 1, 'its own hint does not come back')
})

test('a topic goes out once for many changes, and names nothing', async (t) => {
  const url = await aPostgresDatabase()
  const [a, b] = await instances(t, url, 2)
  const seen = await spy(t, url)
  let heard = 0
  b.hints.listen('catch_x', () => heard++)
  await until('a knows that there is another', () => {
    a.hints.notify('catch_x')
    return heard > 1
  })
  const seenAt = async (topic: string): Promise<number> => {
    a.hints.notify(topic)
    await until('it has gone out', () => topicsOf(seen).includes(topicHash(topic)))
    return topicsOf(seen).length
  }
  const before = await seenAt('catch_mark')
  for (let i = 0; i < 1_000; i++) a.hints.notify('catch_x')
  const after = await seenAt('catch_last')
  const told = topicsOf(seen).slice(before, after)
  assert.equal(told.filter((topic) => topic === topicHash('catch_x')).length, 1)
  assert.ok(!JSON.stringify(seen).includes('catch_'), 'a payload names a resource')
})

test('an instance without others tells nobody', async (t) => {
  const url = await aPostgresDatabase()
  const seen = await spy(t, url)
  const alone = await anInstance(t, url, () => false)
  for (let i = 0; i < 100; i++) alone.hints.notify(`catch_${i}`)
  const [other] = await instances(t, url, 1)
  other.hints.notify('catch_mark')
  await until('another tells', () => seen.length > 0)
  assert.deepEqual(topicsOf(seen), [topicHash('catch_mark')])
})

test('a payload of somebody else does no harm', async (t) => {
  const url = await aPostgresDatabase()
  const [a] = await instances(t, url, 1)
  let heard = 0
  a.hints.listen('catch_x', () => heard++)
  await asAdministrator(url, async (client) => {
    for (const payload of ['', ' ', '{"all":true}', 'x', `x  ${topicHash('catch_x')}`]) {
      await client.query('select pg_notify($1, $2)', ['mayfly_hints', payload])
    }
  })
  await until('it has heard the good one', () => heard > 0)
  assert.equal(heard, 1)
})

test('a line that is cut while it tells is mended, each time that it is cut', async (t) => {
  const url = await aPostgresDatabase()
  const [a, b] = await instances(t, url, 2)
  let heard = 0
  b.hints.listen('catch_x', () => heard++)
  await until('the line works', () => {
    a.hints.notify('catch_x')
    return heard > 1
  })
  for (const times of [1, 2]) {
    let isCut = false
    const cutting = cut(url).finally(() => {
      isCut = true
    })
    while (!isCut) {
      a.hints.notify('catch_x')
      await new Promise(setImmediate)
    }
    await cutting
    await until('both say that it was lost', () =>
      [a, b].every(({ lost }) => lost.length === times),
    )
    await until('both say that it is back', () => [a, b].every(({ back }) => back === times))
    const before = heard
    await until('it works again', () => {
      a.hints.notify('catch_x')
      return heard > before + 1
    })
  }
  assert.deepEqual([a.lost.length, b.lost.length], [2, 2])
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

test('a server that ends each connection is asked again and again, which is told once, until the hints are closed', async (t) => {
  let asked = 0
  const url = await serve(
    t,
    createServer((socket) => {
      asked++
      socket.destroy()
    }),
  )
  const leftovers = countLeftovers(t)
  const { hints, lost, back } = await anInstance(t, url.replace('http://', 'postgres://x:x@'))
  await until('another try', () => asked > 2)
  assert.deepEqual([lost.length, back], [1, 0])
  await hints.close()
  await new Promise(setImmediate)
  assert.equal(leftovers().timers, 0, 'nothing waits for another try')
})

type Instance = { hints: Hints; lost: string[]; back: number }

async function anInstance(
  t: After,
  url: string,
  hasOthers = (): boolean => true,
): Promise<Instance> {
  const lost: string[] = []
  const instance = { lost, back: 0 }
  const hints = await openPostgresHints(url, {
    hasOthers,
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

/** Every payload from now on. */
async function spy(t: After, url: string): Promise<string[]> {
  const client = new Client(url)
  await client.connect()
  t.after(() => client.end())
  const seen: string[] = []
  client.on('notification', ({ payload = '' }) => seen.push(payload))
  await client.query('listen mayfly_hints')
  return seen
}

/** Of the messages, without who has sent them. */
const topicsOf = (seen: string[]): string[] =>
  seen.flatMap((message) => message.split(' ').slice(1))

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
