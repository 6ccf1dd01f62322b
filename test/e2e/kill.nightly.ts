import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { type CatchCapability, createMayfly } from '../../src/client/index.ts'
import { openSqlite } from '../../src/db/sqlite/sqlite.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type Program, startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'

const KEY = '3e9d1f70-52c4-4b8a-8d6e-7a1c0b9f2e35'

type Quote = { orderId: string; bolt11: string; paymentHash: string }

/** A store of its own, on which the program can be started again and again. */
async function aStore(t: TestContext) {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  return { file, start: () => startProgram(t, file) }
}

async function buy({ url, pay }: Program): Promise<CatchCapability> {
  const mayfly = createMayfly({ baseUrl: url })
  return mayfly.buyCatch({ planId: 'spark', onInvoice: ({ bolt11 }) => pay(bolt11) })
}

const purchase = ({ url }: Program) =>
  fetch(`${url}/api/payments/catch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': KEY },
    body: '{"planId":"spark"}',
  })

async function quoted(program: Program): Promise<Quote> {
  const response = await purchase(program)
  assert.equal(response.status, 402)
  return (await response.json()) as Quote
}

/** The capability of a paid order; the node and the store may need a moment for it. */
function collected({ url }: Program, { orderId }: Quote): Promise<string> {
  return until('the poll delivers', async () => {
    const response = await fetch(`${url}/api/payments/${orderId}`)
    return response.status === 200 && response.text()
  })
}

/** The capability works: the inbox takes a request and shows it to its owner. */
async function works({ url }: Program, body: string): Promise<void> {
  const { resource } = JSON.parse(body) as { resource: CatchCapability }
  const sent = await fetch(`${url}/c/${resource.publicId}`, { method: 'POST', body: 'hello' })
  assert.equal(sent.status, 204)
  const { events } = await createMayfly({ baseUrl: url }).catch(resource).page()
  assert.deepEqual(
    events.map((event) => event.body),
    ['hello'],
  )
}

suite('a service killed in the middle of a sale', { timeout: 600_000 }, () => {
  test('a service killed after the delivery gives the buyer the same bytes again, and gives nobody else anything', async (t) => {
    const { start } = await aStore(t)
    const first = await start()
    const quote = await quoted(first)
    await first.pay(quote.bolt11)
    const body = await collected(first, quote)
    await first.kill()
    const second = await start()
    const plain = await fetch(`${second.url}/api/payments/${quote.orderId}`)
    const repeated = await purchase(second)
    assert.deepEqual(
      [plain.status, await plain.json(), repeated.status, await repeated.text()],
      [404, { error: 'already delivered' }, 200, body],
    )
  })

  test('a payment while the service was down is found at the start, without a poll', async (t) => {
    const { file, start } = await aStore(t)
    const first = await start()
    const quote = await quoted(first)
    await first.kill()

    await atNode(file, quote)

    const second = await start()
    const { paymentHash, by } = await second.saw('order.settled')
    assert.deepEqual({ paymentHash, by }, { paymentHash: quote.paymentHash, by: 'lookup' })
    await works(second, await collected(second, quote))
  })
})

/** Pays at the node that is in the store, whatever runs beside it. */
async function atNode(file: string, { bolt11 }: Quote): Promise<void> {
  const db = await openSqlite(file)
  const simulator = await createSimulator({ db, clock: systemClock })
  assert.equal((await simulator.pay(bolt11)).kind, 'paid')
  await db.close()
}

suite('a service told to stop', { timeout: 600_000 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`a service told to stop by ${signal} finishes the request under way and exits with 0`, async (t) => {
      const { start } = await aStore(t)
      const program = await start()
      const inbox = await buy(program)
      const underWay = await beginRequest(program, inbox)
      program.signal(signal)
      await until('it says so', () => program.told().includes('Stopping'))
      await until('it takes no new request', () =>
        fetch(`${program.url}/health`).then(
          () => false,
          () => true,
        ),
      )
      const [response] = await Promise.all([once(underWay, 'response'), underWay.end(' end')])
      assert.equal((response[0] as IncomingMessage).statusCode, 204)
      assert.deepEqual(await program.ended, { code: 0, signal: null })
      assert.equal(program.logged.at(-1)?.event, 'stopped')

      const again = await start()
      const { events } = await createMayfly({ baseUrl: again.url }).catch(inbox).page()
      assert.deepEqual(
        events.map(({ body }) => body),
        ['begin end'],
      )
    })
  }

  test('a service told to stop twice ends at once, whatever is under way', async (t) => {
    const { start } = await aStore(t)
    const program = await start()
    const underWay = await beginRequest(program, await buy(program))
    const cut = once(underWay, 'error')
    program.signal('SIGTERM')
    await until('it says so', () => program.told().includes('Stopping'))
    program.signal('SIGTERM')
    assert.deepEqual(await program.ended, { code: 1, signal: null })
    await cut
  })

  /** A request to the inbox of which the program has the headers, and half the body. */
  async function beginRequest(
    { url }: Program,
    { publicId }: CatchCapability,
  ): Promise<ClientRequest> {
    const underWay = request(`${url}/c/${publicId}`, {
      method: 'POST',
      headers: { expect: '100-continue', 'content-length': 'begin end'.length },
    })
    underWay.flushHeaders()
    await once(underWay, 'continue')
    underWay.write('begin')
    return underWay
  }
})
