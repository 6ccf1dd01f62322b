import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { openStore } from '../../src/db/open.ts'
import { type Service, startService, storeAt } from '../faults/service.ts'
import { audit, settledBySimulator } from '../support/accounting.ts'
import { type Address, fixedAddress } from '../support/address.ts'
import { startProgram } from '../support/program.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'
import { type Cluster, debianClusters } from './debian.ts'
import { BIN } from './versions.ts'

/** A long run sets more: `DRILL_FAILOVERS=50 npm run drill:standby`. */
const FAILOVERS = Number(process.env.DRILL_FAILOVERS ?? 5)
/** Promises made before a kill, at most. */
const PROMISES = 150

type Pair = {
  primary: Cluster
  standby: Cluster
  /** Between the first two. */
  line: Address
  /** Makes the standby the primary, and another server its standby. */
  replace(): Promise<void>
}

/** A primary and its standby, which commits wait for if `isSynchronous`. */
async function pair(t: TestContext, isSynchronous: boolean): Promise<Pair> {
  const clusters = await debianClusters(t)
  const primary = await clusters.primary()
  const line = await fixedAddress(t, primary.port)
  const made: Pair = {
    primary,
    standby: await clusters.standbyOf(primary, line.port),
    line,
    async replace() {
      made.primary = made.standby
      made.standby = await clusters.standbyOf(made.primary)
      if (isSynchronous) await wait(made.primary)
    },
  }
  if (isSynchronous) await wait(primary)
  return made
}

/** From now on commits wait for a standby. */
async function wait(primary: Cluster): Promise<void> {
  await primary.sql(`alter system set synchronous_standby_names = '*'`)
  await primary.sql('select pg_reload_conf()')
  await until('the standby is synchronous', async () => {
    const rows = await primary.sql(
      `select 1 from pg_stat_replication where sync_state in ('sync', 'quorum')`,
    )
    return rows.length === 1
  })
}

const bothOf = ({ primary, standby }: Pair): string =>
  primary.url.replace(/:\d+\//, `:${primary.port},127.0.0.1:${standby.port}/`)

const pidsOf = ({ programs }: Service): unknown[] => programs.map((program) => program?.pid)

const secondsSince = (start: number): string => ((performance.now() - start) / 1000).toFixed(2)

/** The events, pings and purchases that were answered so far. */
function counted({ load: { told, statuses } }: Service): string {
  const events = [...told.stored.values()].reduce((sum, bodies) => sum + bodies.size, 0)
  const pings = [...told.pinged.values()].reduce((sum, n) => sum + n, 0)
  const reads = [...told.reads.values()].reduce((sum, { answered }) => sum + answered, 0)
  const answers = [...statuses].sort().map(([status, n]) => `${n} × ${status}`)
  return `${events} events, ${told.delivered.size} purchases, ${reads} reads, ${pings} pings; ${answers.join(', ')}`
}

/** Kills the primary and promotes the standby. Returns the seconds until something is promised again. */
async function failOver(
  service: Service,
  { primary, standby }: Pair,
  onPromoted: () => void = () => {},
): Promise<string> {
  const from = performance.now()
  await primary.kill()
  await standby.promote()
  const promoted = secondsSince(from)
  onPromoted()
  await service.progress(1)
  return `${secondsSince(from)} (promoted after ${promoted})`
}

suite('a standby takes over under mixed load', { timeout: 600_000 + FAILOVERS * 60_000 }, () => {
  test('behind one address that moves, nothing that was answered is lost or doubled', async (t) => {
    const servers = await pair(t, true)
    const address = await fixedAddress(t, servers.primary.port)
    const store = storeAt(servers.primary.url.replace(/:\d+\//, `:${address.port}/`))
    const service = await startService(t, store, { instances: 2, bin: BIN })
    const pids = pidsOf(service)
    for (let i = 0; i < FAILOVERS; i++) {
      await service.progress(1 + Math.floor(Math.random() * PROMISES))
      const { port } = servers.standby
      const seconds = await failOver(service, servers, () => address.moveTo(port))
      t.diagnostic(`failover ${i + 1}: ${seconds} s`)
      await servers.replace()
    }
    await service.progress(PROMISES)
    assert.deepEqual(pidsOf(service), pids)
    t.diagnostic(counted(service))
    assert.deepEqual(await service.close(), [])
  })

  test('nothing that was answered is lost or doubled, with both servers in the URL', async (t) => {
    const servers = await pair(t, true)
    // Each server keeps its address when another is made in its place, as two machines do.
    const [a, b] = [
      await fixedAddress(t, servers.primary.port),
      await fixedAddress(t, servers.standby.port),
    ]
    const url = servers.primary.url.replace(/:\d+\//, `:${a.port},127.0.0.1:${b.port}/`)
    const service = await startService(t, storeAt(url), { instances: 2, bin: BIN })
    const pids = pidsOf(service)
    for (let i = 0; i < FAILOVERS; i++) {
      await service.progress(1 + Math.floor(Math.random() * PROMISES))
      t.diagnostic(`failover ${i + 1}: ${await failOver(service, servers)} s`)
      await servers.replace()
      ;(i % 2 === 0 ? a : b).moveTo(servers.standby.port)
    }
    await service.progress(PROMISES)
    assert.deepEqual(pidsOf(service), pids)
    t.diagnostic(counted(service))
    assert.deepEqual(await service.close(), [])
  })

  test('a primary that stood still and comes back is neither written to nor read', async (t) => {
    const servers = await pair(t, true)
    const url = bothOf(servers)
    const service = await startService(t, storeAt(url), { instances: 2, bin: BIN })
    await service.progress(PROMISES)
    const { primary: former, standby } = servers
    const from = performance.now()
    const thaw = former.freeze()
    const frozenAt = Date.now()
    t.after(thaw)
    await standby.promote()
    await service.progress(1)
    t.diagnostic(`failover from a frozen server: ${secondsSince(from)} s`)
    await service.progress(PROMISES)
    thaw()
    // Nothing holds up its commits any more: it would take whatever it is sent.
    await former.sql(`alter system set synchronous_standby_names = ''`)
    await former.sql('select pg_reload_conf()')
    const inUse = `select count(*)::int as n from pg_stat_activity where application_name like 'mayfly%'`
    // A connection may ask both servers which is the primary, and leaves this one at once.
    const isLeft = () =>
      until('the former primary is left', async () => (await former.sql(inUse))[0]?.n === 0)
    await isLeft()
    const late = await startProgram(t, '', {
      bin: BIN,
      environment: { MAYFLY_DATABASE_URL: url, MAYFLY_SECRET: '22'.repeat(32) },
    }).catch((error: Error) => error)
    // It found the orders of the others, so it is on their server.
    assert.match(String(late), /is not the one that \d+ open or uncollected orders were made under/)
    await service.progress(PROMISES)
    await isLeft()
    t.diagnostic(counted(service))
    assert.deepEqual(await service.close(), [])
    const { lost, answered, wrong } = await booksOf(service, standby)
    assert.deepEqual([lost, wrong], [0, []])
    const { events, late: written } = await writtenSince(frozenAt, former)
    t.diagnostic(
      `${answered} events were answered; the former primary has ${events}, none of them later`,
    )
    assert.equal(written, 0)
    // What it must not have would be found: the new primary has it.
    assert.ok((await writtenSince(frozenAt, standby)).late > 0)
    assert.ok(events < answered)
  })

  test('an address that leads back to the former primary gets no answer but 503', async (t) => {
    const servers = await pair(t, true)
    const { primary: former, standby } = servers
    const address = await fixedAddress(t, former.port)
    const store = storeAt(former.url.replace(/:\d+\//, `:${address.port}/`))
    const service = await startService(t, store, { instances: 2, bin: BIN })
    await service.progress(PROMISES)
    // Nothing fences it: somebody has promoted the standby while the primary was alive.
    await former.sql(`alter system set synchronous_standby_names = ''`)
    const cut = former.freeze()
    await standby.promote()
    address.moveTo(standby.port)
    await service.progress(PROMISES)
    cut()
    await former.sql('select pg_reload_conf()')
    address.moveTo(former.port)
    for (const program of service.programs) {
      await until('the service says that its store is away', async () => {
        const answer = await fetch(`${program?.url}/ready`)
        await answer.arrayBuffer()
        return answer.status === 503
      })
      const [publicId] = service.load.told.stored.keys()
      const answers = await Promise.all([
        fetch(`${program?.url}/c/${publicId}`, { method: 'POST', body: 'x' }),
        fetch(`${program?.url}/api/payments/catch`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() },
          body: '{"planId":"spark"}',
        }),
      ])
      assert.deepEqual(
        answers.map(({ status }) => status),
        [503, 503],
      )
    }
    address.moveTo(standby.port)
    await service.progress(PROMISES)
    assert.deepEqual(await service.close(), [])
  })

  for (const behind of [false, true]) {
    const how = behind ? 'that the primary has lost touch with' : 'close by'
    test(`an asynchronous standby ${how} may lose what was answered last, and doubles nothing`, async (t) => {
      let [lost, answered, purchases, sold] = [0, 0, 0, 0]
      for (let i = 0; i < FAILOVERS; i++) {
        const servers = await pair(t, false)
        const service = await startService(t, storeAt(bothOf(servers)), {
          instances: 2,
          bin: BIN,
        })
        await service.progress(PROMISES)
        if (behind) {
          servers.line.stall()
          await service.progress(PROMISES)
        }
        await servers.primary.kill()
        service.load.abandon()
        for (const place of [0, 1]) await service.kill(place)
        await service.load.stop()
        await servers.standby.promote()
        await service.start(0)
        const found = await booksOf(service, servers.standby)
        lost += found.lost
        answered += found.answered
        purchases += found.purchases
        sold += service.load.told.delivered.size
        assert.deepEqual(found.wrong, [])
        await service.kill(0)
        await servers.standby.kill()
      }
      t.diagnostic(
        `lost in ${FAILOVERS} failovers: ${lost} of ${answered} events that got 204, ${purchases} of ${sold} purchases`,
      )
      if (behind) assert.ok(lost > 0)
    })
  }
})

/** The rows of events and orders that came after this time, and all events. */
async function writtenSince(
  time: number,
  { url }: Cluster,
): Promise<{ events: number; late: number }> {
  const [row] = await query(
    { databaseUrl: url },
    `select (select count(*) from catch_event) as events,
       (select count(*) from catch_event where received_at > $1)
       + (select count(*) from purchase_order where created_at > $1) as late`,
    time,
  )
  return { events: Number(row?.events), late: Number(row?.late) }
}

const UNSETTLED = `select 1 as n from purchase_order o
  join simulator_invoice i on i.payment_hash = o.payment_hash
  where i.state = 'settled' and o.state = 'pending'`

/** What a promoted server has of what was answered, and what is wrong beside what is missing. */
async function booksOf({ load }: Service, server: Cluster) {
  const db = await openStore({ kind: 'postgres', url: server.url })
  try {
    await until('what was paid for is settled', async () => {
      const open = await db.read(UNSETTLED)
      return open.length === 0
    })
    let [lost, answered] = [0, 0]
    for (const [publicId, bodies] of load.told.stored) {
      const rows = await db.read(
        'select body from catch_event where inbox = (select number from catch_inbox where public_id = $1)',
        publicId,
      )
      const kept = new Set(rows.map(({ body }) => new TextDecoder().decode(body as Uint8Array)))
      answered += bodies.size
      lost += [...bodies].filter((body) => !kept.has(body)).length
    }
    const all = await audit({ db, settled: await settledBySimulator(db), told: load.told })
    // A WHISPER that the server has never had looks like one whose reads are all spent.
    const isMissing = /has lost|knows nothing of it|reads and spent/
    const purchases = all.filter((sentence) => sentence.endsWith('knows nothing of it')).length
    return { lost, answered, purchases, wrong: all.filter((sentence) => !isMissing.test(sentence)) }
  } finally {
    await db.close()
  }
}
