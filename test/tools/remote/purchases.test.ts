/** Buying at /mcp: whatever is lost, repeated or guessed, nobody pays twice and nobody else collects. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CatchCapability } from '../../../src/client/index.ts'
import type { After } from '../../support/folder.ts'
import {
  type Agent,
  capabilityIn,
  challengeIn,
  connect,
  credentialOf,
  purchaseIn,
  REVISIONS,
  type Result,
  refusalIn,
} from '../../support/mcp.ts'
import { mppxClient } from '../../support/mppx.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { shareServer } from '../../support/shared-server.ts'
import { query } from '../../support/store.ts'

const ASKED = { planId: 'spark' }

/** Begins a purchase and pays its invoice, without repeating the call. */
async function paid(agent: Agent, pay: TestServer['pay']) {
  const asked = await agent.call('buy_inbox', ASKED)
  const { purchaseId, quote } = purchaseIn(asked)
  const preimage = await pay(quote.bolt11)
  const meta = credentialOf(challengeIn(asked), preimage)
  return { given: { ...ASKED, purchaseId }, meta, purchaseId, quote, preimage, asked }
}

const orders = async (server: TestServer): Promise<number> => {
  const [row] = await query(server, 'select count(*) as count from purchase_order')
  return Number(row?.count)
}

suite('buying at /mcp', () => {
  const start = shareServer()
  async function aBuyer(t: After, options: Parameters<typeof connect>[2] = {}) {
    const { url, pay, logged } = await start()
    return { url, pay, logged, agent: await connect(t, url, options) }
  }

  for (const revision of REVISIONS) {
    test(`20 repeats of a paid call at once get one capability, for a client of ${revision}`, async (t) => {
      const { agent, pay } = await aBuyer(t, { revision })
      const { given, meta } = await paid(agent, pay)
      const results = await Promise.all(
        Array.from({ length: 20 }, () => agent.call('buy_inbox', given, { meta })),
      )
      const ids = results.map((each) => capabilityIn<CatchCapability>(each).ownerToken)
      assert.equal(new Set(ids).size, 1)
    })
  }

  test('a purchase that was paid natively is collected by the repeated call, or by check_order', async (t) => {
    const { agent, pay } = await aBuyer(t)
    const { given, purchaseId, quote } = await paid(agent, pay)
    const capability = capabilityIn(await agent.call('buy_inbox', given))
    const checked = await agent.call('check_order', { orderId: quote.orderId, purchaseId })
    assert.deepEqual(capabilityIn(checked), capability)
  })

  test('a payer that repeats the credential alone gets what it paid for, again and again', async (t) => {
    const { agent, pay } = await aBuyer(t)
    const { meta } = await paid(agent, pay)
    const one = capabilityIn(await agent.call('buy_inbox', ASKED, { meta }))
    assert.deepEqual(capabilityIn(await agent.call('buy_inbox', ASKED, { meta })), one)
  })

  test('a wrong preimage gets the same invoice again, not another one', async (t) => {
    const { agent } = await aBuyer(t)
    const asked = await agent.call('buy_inbox', ASKED)
    const meta = credentialOf(challengeIn(asked), '00'.repeat(32))
    const again = await agent.call('buy_inbox', ASKED, { meta })
    assert.equal(purchaseIn(again).quote.bolt11, purchaseIn(asked).quote.bolt11)
  })

  test('a credential that names no purchase is refused, without another invoice', async (t) => {
    const { agent } = await aBuyer(t)
    const { opaque, ...challenge } = challengeIn(await agent.call('buy_inbox', ASKED))
    assert.ok(opaque)
    const meta = credentialOf(challenge, '00'.repeat(32))
    const said = refusalIn(await agent.call('buy_inbox', ASKED, { meta }))
    assert.match(said, /Do not pay again: repeat the call with the purchaseId/)
  })

  test('a credential that is none is refused, and the money is said to be safe', async (t) => {
    const { agent, logged } = await aBuyer(t)
    const { purchaseId } = purchaseIn(await agent.call('buy_inbox', ASKED))
    const named = { opaque: 'e30', request: 'e30' }
    const isList = { challenge: { opaque: 7, request: [] }, payload: { preimage: [] } }
    for (const [what, value] of [
      ['a text', 'Payment abc'],
      ['no challenge', { payload: {} }],
      ['no payload', { challenge: named }],
      ['a preimage that is a list', isList],
      ['more than a header holds', { challenge: { ...named, x: 'x'.repeat(20_000) }, payload: {} }],
      ['a lone surrogate', { challenge: { x: '\ud800' }, payload: {} }],
    ] as const) {
      const meta = { 'org.paymentauth/credential': value }
      const result = await agent.call('buy_inbox', { ...ASKED, purchaseId }, { meta })
      const isAskedAgain = result.structuredContent?.state === 'payment required'
      if (isAskedAgain) assert.equal(purchaseIn(result).purchaseId, purchaseId, what)
      else assert.match(refusalIn(result), /do not pay again/i, what)
    }
    const faults = logged.filter((line) => line.includes('mcp.failed'))
    assert.deepEqual(faults, [], 'it is no fault of the service')
  })

  test('a purchaseId that the service did not make buys nothing', async (t) => {
    const { agent } = await aBuyer(t)
    const { purchaseId } = purchaseIn(await agent.call('buy_inbox', ASKED))
    const last = purchaseId.endsWith('0') ? '1' : '0'
    for (const guessed of [
      '0'.repeat(33),
      `${purchaseId.startsWith('1') ? '2' : '1'}${purchaseId.slice(1)}`,
      purchaseId.slice(0, -1) + last,
      '3f0c9a52-8d1e-4b67-9a4f-5e2b7c6d1a90',
    ]) {
      const result = await agent.call('buy_inbox', { ...ASKED, purchaseId: guessed })
      assert.match(refusalIn(result), /unknown purchaseId/)
      const checked = await agent.call('check_order', { orderId: 'order_x', purchaseId: guessed })
      assert.match(refusalIn(checked), /unknown purchaseId/)
    }
  })

  test('tokens are in results and arguments unless the connection says tokens=meta, and the first answer says which', async (t) => {
    const { url, pay } = await start()
    const agent = await connect(t, url, { query: '' })
    const { given, meta, asked } = await paid(agent, pay)
    assert.match(
      asked.content[0]?.text ?? '',
      /tokens in the result, and this chat then holds them/,
    )
    const other = await connect(t, url)
    const [said] = (await other.call('buy_inbox', ASKED)).content
    assert.match(said?.text ?? '', /in _meta\["org\.mayfly\/capability"\] alone/)
    const { structuredContent, _meta } = await agent.call('buy_inbox', given, { meta })
    const { publicId, ownerToken } = (structuredContent?.bought ?? {}) as CatchCapability
    assert.equal(_meta?.['org.mayfly/capability'], undefined)
    const read = await agent.call('read_inbox', { publicId, token: ownerToken })
    assert.match(read.content[0]?.text ?? '', /^0 of 0 requests/)
  })

  test('mppx pays by itself as a client of MCP, once', async (t) => {
    const { url, pay } = await start()
    const invoices: string[] = []
    const payer = await mppxClient(t, `${url}/mcp?tokens=meta`, async (invoice) => {
      invoices.push(invoice)
      return pay(invoice)
    })
    const result = await payer.callTool({ name: 'buy_inbox', arguments: ASKED })
    assert.ok(capabilityIn<CatchCapability>(result as Result).ownerToken)
    assert.equal((result.receipt as { status: string }).status, 'success')
    assert.equal(invoices.length, 1)
  })
})

suite('a purchase at /mcp and the end of a process', () => {
  test('a purchase that was begun and paid before a restart is collected after it', async (t) => {
    const server = await startServer(t)
    const before = await connect(t, server.url)
    const { given, meta } = await paid(before, server.pay)
    await before.close()
    await server.restart()
    const after = await connect(t, server.url)
    assert.ok(capabilityIn(await after.call('buy_inbox', given, { meta })))
    assert.ok(capabilityIn(await after.call('buy_inbox', ASKED, { meta })))
    assert.equal(await orders(server), 1)
  })

  test('a paid call whose answer is lost is repeated, and costs nothing', async (t) => {
    const server = await startServer(t)
    const agent = await connect(t, server.url)
    const { given, meta } = await paid(agent, server.pay)
    const lost = agent.call('buy_inbox', given, { meta })
    await agent.close()
    await lost.catch(() => undefined)
    const again = await connect(t, server.url)
    assert.ok(capabilityIn(await again.call('buy_inbox', given, { meta })))
    assert.equal(await orders(server), 1)
  })
})
