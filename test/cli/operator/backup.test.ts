import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite, type TestContext, test } from 'node:test'
import { type CatchCapability, createMayfly } from '../../../src/client/index.ts'
import { contestRestored } from '../../../src/payment/operator.ts'
import { poll, purchase, quoteOf } from '../../support/buying.ts'
import { runCommand } from '../../support/command.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { payAt } from '../../support/payer.ts'
import { startProgram } from '../../support/program.ts'
import { startServer } from '../../support/server.ts'
import { query } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const onStore = (file: string) => ({ MAYFLY_DATABASE_URL: `sqlite:${file}` })
const backup = (file: string, copy: string) => runCommand(['backup', copy], onStore(file))
const restore = (file: string, copy: string) => runCommand(['restore', copy], onStore(file))

test('a backup that was taken under load has all that was acknowledged before it', async (t) => {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'mayfly.db')
  const environment = {
    MAYFLY_RATE_LIMITS: 'off',
    MAYFLY_CATALOG: join(folder, 'catalog.json'),
  }
  const plans = { catch: { spark: { requestLimit: 1_000_000, storageLimitBytes: 100_000_000 } } }
  await writeFile(environment.MAYFLY_CATALOG, JSON.stringify(plans))
  const first = await startProgram(t, file, { environment })
  const inbox = await collected(first.url)
  const uncollected = await paid(first.url)
  const delivered = await collected(first.url)

  const sent = new Set<string>()
  const acknowledged = new Set<string>()
  let isOver = false
  const load = [
    ...Array.from({ length: 8 }, async (_, sender) => {
      for (let i = 0; !isOver; i++) {
        const body = `${sender}/${i}`
        sent.add(body)
        const answer = await fetch(`${first.url}/c/${inbox.publicId}`, { method: 'POST', body })
        if (answer.status === 204) acknowledged.add(body)
      }
    }),
    (async () => {
      while (!isOver) await paid(first.url)
    })(),
  ]
  await until('the load is on', () => acknowledged.size > 100)
  const before = [...acknowledged]
  const copy = join(folder, 'copy.db')
  const { code, out, err } = await backup(file, copy)
  assert.deepEqual([code, err], [0, ''])
  assert.match(
    out,
    /has the store with \d+ orders\. The copy was read back and is complete\.\n.*mayfly\.secret too/,
  )
  // Meanwhile, or right after it where the machine had no time for both.
  await until('the service goes on', () => acknowledged.size > before.length)
  isOver = true
  await Promise.all(load)
  first.signal('SIGTERM')
  await first.ended
  assert.equal((await stat(copy)).mode & 0o777, 0o600)

  const place = join(folder, 'elsewhere', 'mayfly.db')
  const restored = await restore(place, copy)
  assert.deepEqual([restored.code, restored.err], [0, ''])
  assert.match(restored.out, /Put its secret back before the start/)
  await copyFile(join(folder, 'mayfly.secret'), join(folder, 'elsewhere', 'mayfly.secret'))
  const second = await startProgram(t, place, { environment })

  const events = createMayfly({ baseUrl: second.url }).catch(inbox).events({ limit: 50 })
  const bodies = (await Array.fromAsync(events)).map(({ body }) => String(body))
  const kept = new Set(bodies)
  assert.deepEqual(
    {
      lost: before.filter((body) => !kept.has(body)),
      neverSent: bodies.filter((body) => !sent.has(body)),
      twice: bodies.length - kept.size,
    },
    { lost: [], neverSent: [], twice: 0 },
  )
  const takes = await fetch(`${second.url}/c/${inbox.publicId}`, { method: 'POST', body: 'x' })
  assert.equal(takes.status, 204)

  const late = await until('what was paid is delivered', async () => {
    const answer = await poll(second, uncollected.orderId, { key: uncollected.key })
    return answer.status === 200 && answer
  })
  const { resource } = JSON.parse(late.text)
  const works = await fetch(`${second.url}/c/${resource.publicId}`, { method: 'POST', body: 'x' })
  assert.equal(works.status, 204)
  for (const { orderId } of [uncollected, delivered]) {
    const again = await poll(second, orderId)
    assert.deepEqual([again.status, again.text], [404, '{"error":"already delivered"}'])
  }
})

suite('a backup', () => {
  test('an order that was open in a backup is given to nobody but who proves the payment, since who knew its key is forgotten', async (t) => {
    const { server, folder, copy } = await aService(t)
    const { bolt11, orderId } = quoteOf(await purchase(server, { key: 'order-1001' }))
    assert.equal((await backup(server.file, copy)).code, 0)
    const place = join(folder, 'elsewhere', 'mayfly.db')
    assert.equal((await restore(place, copy)).code, 0)
    const secret = (file: string): string => file.replace(/db$/, 'secret')
    await copyFile(secret(server.file), secret(place))
    const again = await startProgram(t, place, { environment: { MAYFLY_RATE_LIMITS: 'off' } })
    const preimage = await payAt(again.url, bolt11)
    const withKey = { key: 'order-1001' }
    const asked = await until('it is paid', async () => {
      const answer = await purchase(again, withKey)
      return answer.status !== 402 && answer
    })
    assert.deepEqual([asked.status, asked.text], [404, '{"error":"proof of payment required"}'])
    assert.equal((await poll(again, orderId)).status, 404)
    const proven = await purchase(again, { ...withKey, headers: { 'payment-preimage': preimage } })
    assert.equal(proven.status, 200)
  })

  test('what docs/run/backup.md runs after a restore on PostgreSQL is what `restore` runs on SQLite', async () => {
    const docs = await readFile(new URL('../../../docs/run/backup.md', import.meta.url), 'utf8')
    const [, statement = ''] = /psql "\$MAYFLY_DATABASE_URL" -c "(update [^"]*)"/.exec(docs) ?? []
    const words = (text: string): string => text.replaceAll(/\s+/g, ' ')
    assert.equal(words(statement), words(contestRestored.text))
  })

  test('a backup has nothing of what was deleted before it', async (t) => {
    const { server, copy } = await aService(t)
    const inbox = await collected(server.url)
    const body = `deleted-${randomUUID()}`
    await fetch(`${server.url}/c/${inbox.publicId}`, { method: 'POST', body })
    const owner = server.mayfly.catch(inbox)
    const { events } = await owner.page()
    for (const { id } of events) await owner.deleteEvent(id)
    assert.equal((await backup(server.file, copy)).code, 0)
    assert.ok(!(await readFile(copy)).includes(body))
  })

  test('a backup is never written over another file, and leaves nothing behind when it fails', async (t) => {
    const { server, folder, copy } = await aService(t)
    await writeFile(copy, 'precious')
    const refused = await backup(server.file, copy)
    assert.deepEqual(refused, {
      code: 1,
      out: '',
      err: `${copy} exists and is not overwritten.\n`,
    })
    assert.equal(await readFile(copy, 'utf8'), 'precious')
    const missing = await backup(join(folder, 'none.db'), join(folder, 'other.db'))
    assert.deepEqual([missing.code, missing.out], [2, ''])
    assert.match(missing.err, /^There is no store at /)
    const nowhere = await backup(server.file, join(folder, 'no', 'folder.db'))
    assert.deepEqual(
      [nowhere.code, nowhere.err],
      [2, `There is no folder ${join(folder, 'no')}.\n`],
    )
    const none = await restore(join(folder, 'new.db'), join(folder, 'none.db'))
    assert.deepEqual([none.code, none.err], [2, `There is no file ${join(folder, 'none.db')}.\n`])
    assert.deepEqual(await readdir(folder), ['copy.db'])
  })

  test('a backup of a stopped service is as complete', async (t) => {
    const { server, folder, copy } = await aService(t)
    await collected(server.url)
    await server.stop()
    assert.equal((await backup(server.file, copy)).code, 0)
    assert.equal((await restore(join(folder, 'mayfly.db'), copy)).code, 0)
    assert.deepEqual(
      await query(
        { databaseUrl: `sqlite:${join(folder, 'mayfly.db')}` },
        'select state from purchase_order',
      ),
      [{ state: 'settled' }],
    )
  })
})

suite('restoring', () => {
  test('restoring is refused where a store is, in use or not, until it was moved away', async (t) => {
    const { server, copy } = await aService(t)
    assert.equal((await backup(server.file, copy)).code, 0)
    const used = await restore(server.file, copy)
    assert.deepEqual([used.code, used.out], [1, ''])
    assert.match(used.err, /mayfly\.db exists\. Stop the service that uses it, and move /)
    // Moved under the running service, its log gives it away.
    await rename(server.file, `${server.file}.old`)
    assert.match((await restore(server.file, copy)).err, /mayfly\.db-wal exists\./)
    await rename(`${server.file}.old`, server.file)
  })

  test('restoring refuses what is damaged, newer or no store, and leaves nothing behind', async (t) => {
    const { server, folder, copy } = await aService(t)
    await collected(server.url)
    assert.equal((await backup(server.file, copy)).code, 0)
    const place = join(folder, 'place', 'mayfly.db')
    await mkdir(join(folder, 'place'))

    const bytes = await readFile(copy)
    const bad: [name: string, make: (file: string) => Promise<void>, said: RegExp][] = [
      [
        'damaged',
        (file) => writeFile(file, bytes.fill(7, 8_192, 40_000)),
        /^The copy (?:is|cannot)/,
      ],
      ['noise', (file) => writeFile(file, 'no database at all'), /^The copy cannot be read/],
      ['foreign', async (file) => alter(file, 'create table t (x)'), /no store of Mayfly/],
      [
        'newer',
        async (file) => {
          await copyFile(copy, file)
          alter(file, `insert into migration (version, name, sha256) values (999, 'later', '')`)
        },
        /migration 999, which this Mayfly does not know/,
      ],
    ]
    for (const [name, make, said] of bad) {
      const file = join(folder, `${name}.db`)
      await make(file)
      const { code, out, err } = await restore(place, file)
      assert.deepEqual([code, out], [1, ''], name)
      assert.match(err, said, name)
      assert.deepEqual(await readdir(join(folder, 'place')), [], name)
    }
  })

  test('restoring says that there can be no folder where the store belongs', async (t) => {
    const { server, folder, copy } = await aService(t)
    assert.equal((await backup(server.file, copy)).code, 0)
    await writeFile(join(folder, 'file'), '')
    const { code, out, err } = await restore(join(folder, 'file', 'data', 'mayfly.db'), copy)
    assert.deepEqual([code, out], [1, ''])
    assert.match(err, /^The folder of \S+ cannot be made: [^\n]+\.\n$/)
  })

  test('backing up and restoring say how they are used', async () => {
    for (const args of [['backup'], ['restore'], ['backup', 'a', 'b'], ['restore', '--force']]) {
      const { code, err } = await runCommand(args)
      assert.deepEqual([code, /^error: .+\nRun .+ --help/.test(err)], [2, true], err)
    }
  })
})

async function aService(t: TestContext) {
  const folder = await temporaryFolder(t)
  return { server: await startServer(t), folder, copy: join(folder, 'copy.db') }
}

async function paid(url: string): Promise<{ orderId: string; key: string }> {
  const key = randomUUID()
  const quote = quoteOf(await purchase({ url }, { key }))
  await payAt(url, quote.bolt11)
  return { ...quote, key }
}

async function collected(url: string): Promise<CatchCapability & { orderId: string }> {
  const { orderId } = await paid(url)
  const answer = await until('the delivery', async () => {
    const polled = await poll({ url }, orderId)
    return polled.status === 200 && polled
  })
  return { ...JSON.parse(answer.text).resource, orderId }
}

function alter(file: string, text: string): void {
  const database = new DatabaseSync(file)
  database.exec(text)
  database.close()
}
