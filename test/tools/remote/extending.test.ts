/** Extending at /mcp: the owner's token opens it, and however often it is repeated, it is paid and added once. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CatchCapability, PulseCapability } from '../../../src/client/index.ts'
import { containsToken } from '../../../src/lib/ids.ts'
import { assertExtended, EXTENDABLE, type Held, SPARK_MS } from '../../support/extension.ts'
import {
  type Agent,
  challengeIn,
  connect,
  credentialOf,
  purchaseIn,
  REVISIONS,
  type Result,
  refusalIn,
} from '../../support/mcp.ts'
import { startServer } from '../../support/server.ts'
import { shareServer } from '../../support/shared-server.ts'
import { query } from '../../support/store.ts'

const asked = ({ publicId }: Held) => ({ publicId, planId: 'spark' })

const endOf = ({ structuredContent, content }: Result): string => {
  assert.equal(structuredContent?.state, 'settled', JSON.stringify(content))
  assert.equal(structuredContent.bought, undefined)
  return (structuredContent.extended as { expiresAt: string }).expiresAt
}

const later = ({ expiresAt }: Held): string =>
  new Date(Date.parse(expiresAt) + SPARK_MS).toISOString()

const seesNoToken = ({ seen }: Agent): void => assert.equal(containsToken(seen.join()), false)

for (const { name, buy, limits } of EXTENDABLE) {
  suite(`the tool extend at /mcp, for ${name}`, () => {
    const start = shareServer()

    for (const revision of REVISIONS) {
      test(`20 repeats of a paid extension add the plan once, for a client of ${revision}`, async (t) => {
        const server = await start()
        const held = await buy(server)
        const agent = await connect(t, server.url, { revision })
        const first = await agent.call('extend', asked(held), { token: held.ownerToken })
        const { purchaseId, quote } = purchaseIn(first)
        assert.equal(quote.amountSats, name === 'catch' ? 100 : 50)
        const unpaid = await agent.call('extend', { ...asked(held), purchaseId })
        assert.deepEqual(purchaseIn(unpaid), purchaseIn(first))
        const preimage = await server.pay(quote.bolt11)
        const meta = credentialOf(challengeIn(first), preimage)
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            i % 4 === 0
              ? agent.call('check_order', { orderId: quote.orderId, purchaseId })
              : i % 4 === 1
                ? agent.call('extend', asked(held), { meta, token: held.ownerToken })
                : i % 4 === 2
                  ? agent.call('extend', asked(held), { meta })
                  : agent.call('extend', { ...asked(held), purchaseId }, { meta }),
          ),
        )
        assert.deepEqual([...new Set(results.map(endOf))], [later(held)])
        for (const { _meta } of results) assert.equal(_meta?.['org.mayfly/capability'], undefined)
        const receipt = results[1]?._meta?.['org.paymentauth/receipt'] as Record<string, unknown>
        assert.equal(receipt.reference, quote.paymentHash)
        await assertExtended(server, { held, limits, times: 1 })
        seesNoToken(agent)
      })
    }

    test('only the owner token opens an extension, for its own plan, and else there is no invoice', async (t) => {
      const server = await startServer(t)
      const [held, other] = [await buy(server), await buy(server)]
      const agent = await connect(t, server.url)
      const before = await orders(server)
      const { ownerToken: token } = held
      const { ingestToken, pingToken } = held as Partial<CatchCapability & PulseCapability>
      for (const [expected, given, shown] of [
        [/needs a token in _meta/, asked(held), undefined],
        [/unauthorized/, asked(held), ingestToken ?? pingToken],
        [/unauthorized/, asked(held), 'x'],
        [/not found/, asked(held), other.ownerToken],
        [/planId must be spark/, { ...asked(held), planId: 'long' }, token],
        [/not found/, { publicId: `${name}_x`, planId: 'spark' }, token],
        [/must be the id of a purchase, catch_/, { publicId: 'x', planId: 'spark' }, token],
        [
          /must be the id of a purchase, catch_… or pulse_…/,
          { publicId: 'whisper_x', planId: 'spark' },
          token,
        ],
        [/unknown purchaseId/, { ...asked(held), purchaseId: '0'.repeat(33) }, token],
      ] as const) {
        const options = shown === undefined ? {} : { token: shown }
        assert.match(refusalIn(await agent.call('extend', given, options)), expected)
      }
      assert.deepEqual(await orders(server), before)
      seesNoToken(agent)
    })
  })
}

const orders = (server: Parameters<typeof query>[0]) =>
  query(server, 'select count(*) as count from purchase_order')
