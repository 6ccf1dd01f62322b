/**
 * `LNGET=<its binary> npm run contract:lnget`: lnget buys by one URL from a Mayfly over a real LND, and pays from
 * another one. No registry has it: build it from a checkout of github.com/lightninglabs/lnget, with
 * `go build ./cmd/lnget`.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import type { CatchCapability, PulseCapability } from '../../src/client/index.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { startTestbed, type Testbed } from '../support/nodes/testbed.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { ordersIn, use as useBought } from './client-market.ts'
import { openBooks, sellingOver } from './lnd-market.ts'
import { startProxy } from './payment-proxy.ts'

const CATCH = '/api/buy/catch/spark'
const PULSE = '/api/buy/pulse/spark'

suite('lnget', () => {
  const closing: (() => unknown)[] = []
  const suiteEnd: After = { after: (work) => closing.push(work) }
  let testbed: Testbed
  let server: TestServer

  before(async () => {
    testbed = await startTestbed()
    closing.push(testbed.close)
    server = await startServer(suiteEnd, {
      ...(await sellingOver(suiteEnd, testbed.alice)),
      MAYFLY_BASE_URL: 'http://localhost:8402',
    })
  })
  after(async () => {
    for (const close of closing.toReversed()) await close()
  })

  /** lnget with a home of its own, in which it keeps its tokens. */
  async function anLnget(t: After) {
    const home = await temporaryFolder(t)
    return async (...args: string[]): Promise<string> => {
      const { stdout } = await promisify(execFile)(process.env.LNGET ?? 'lnget', ['-q', ...args], {
        env: {
          HOME: home,
          LNGET_LN_MODE: 'lnd',
          LNGET_LN_LND_NETWORK: 'regtest',
          LNGET_LN_LND_HOST: testbed.bob.grpcAddress,
          LNGET_LN_LND_TLS_CERT: testbed.bob.certificateFile,
          LNGET_LN_LND_MACAROON: testbed.bob.macaroonFile('admin'),
        },
      })
      return stdout
    }
  }

  const settled = async (): Promise<number> =>
    (await ordersIn(server)).filter(({ state }) => state === 'settled').length

  async function use(answer: string): Promise<void> {
    const { resource } = JSON.parse(answer) as { resource: CatchCapability | PulseCapability }
    await useBought(server.url, resource)
    await openBooks(testbed.alice).balance(server)
  }

  for (const [path, ...options] of [
    [`${CATCH}/l402`],
    [`${PULSE}/l402`, '-X', 'POST', '-d', '{}'],
    [CATCH, '--prefer-scheme', 'payment'],
  ] as const) {
    test(`lnget buys at ${[path, ...options].join(' ')}, and pays once`, async (t) => {
      const before = await settled()
      const lnget = await anLnget(t)
      await use(await lnget(...options, server.url + path))
      assert.equal(await settled(), before + 1)
    })
  }

  test('lnget buys a second inbox with a token that it keeps from the first', async (t) => {
    const before = await settled()
    const lnget = await anLnget(t)
    await use(await lnget(`${server.url}${CATCH}/l402`))
    await use(await lnget(`${server.url}${CATCH}/l402`))
    assert.equal(await settled(), before + 2)
  })

  test('lnget gets what it bought when the answer got lost, and pays once', async (t) => {
    const before = await settled()
    const lnget = await anLnget(t)
    const proxy = await startProxy(t, server)
    proxy.next = 'lose the answer'
    // Its HTTP library sends a GET again whose connection broke.
    const answer = await lnget(`${proxy.url}${CATCH}/l402`)
    assert.deepEqual(
      proxy.paid.map(({ body }) => body.toString()),
      [answer, answer],
    )
    await use(answer)
    assert.equal(await settled(), before + 1)
  })
})
