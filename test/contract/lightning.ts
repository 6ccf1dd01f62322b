/** What every Lightning backend does, the simulator included. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  type InvoiceRequest,
  type Lightning,
  UnknownInvoice,
} from '../../src/lightning/lightning.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { payeeOf } from '../../src/protocol/bolt11-sign.ts'
import { until } from '../support/until.ts'

export type LightningUnderTest = {
  lightning: Lightning
  /** Pays from somewhere else; the preimage in hex, once the payment has come through. */
  pay(bolt11: string): Promise<string>
  /** Moves time past these many seconds, where time is not the wall's. */
  makeExpire?(seconds: number): Promise<void>
  /** The node has no final word for what was not paid; here it settles an invoice after all. */
  settleLate?(paymentHash: string): unknown
  /** Others have accounts at the same node. */
  isShared?: true
  close(): Promise<void>
}

export function lightningContract(
  name: string,
  setup: () => Promise<LightningUnderTest>,
  options: { skip?: string | false } = {},
): void {
  describe(`Lightning: ${name}`, { skip: options.skip ?? false }, () => {
    let world: LightningUnderTest
    before(async () => {
      world = await setup()
    })
    after(() => world?.close())

    test(`${name} says its network and that it is in sync`, async () => {
      const { network, synced } = await world.lightning.info()
      assert.deepEqual({ network, synced }, { network: 'regtest', synced: true })
    })

    test(`${name} says which key signs its invoices, unless others may share that`, async () => {
      const { bolt11 } = await world.lightning.createInvoice(anAsk())
      const { nodeId } = await world.lightning.info()
      assert.equal(nodeId, world.isShared ? null : payeeOf(decodeInvoice(bolt11)))
    })

    test(`${name} makes an invoice of exactly what was asked`, async () => {
      const ask = anAsk({ memo: 'Mayfly: CATCH, spark · ünï', expirySeconds: 901 })
      const before = Date.now()
      const { bolt11, paymentHash } = await world.lightning.createInvoice(ask)
      const invoice = decodeInvoice(bolt11)
      assert.deepEqual(
        {
          network: invoice.network,
          amountMsat: invoice.amountMsat,
          description: invoice.description,
          expirySeconds: invoice.expirySeconds,
          paymentHash: invoice.paymentHash,
        },
        {
          network: 'regtest',
          amountMsat: 21_000,
          description: 'Mayfly: CATCH, spark · ünï',
          expirySeconds: 901,
          paymentHash,
        },
      )
      if (!world.makeExpire) assert.ok(invoice.expiresAt >= before - 1000 + 901_000)
    })

    test(`${name}: an invoice is open before the payment and settled after it`, async () => {
      const { bolt11, paymentHash } = await world.lightning.createInvoice(anAsk())
      assert.deepEqual(await world.lightning.lookupInvoice(paymentHash), { state: 'open' })
      const preimage = await world.pay(bolt11)
      assert.equal(hashOf(preimage), paymentHash)
      assert.deepEqual(await world.lightning.lookupInvoice(paymentHash), { state: 'settled' })
    })

    test(`${name}: an invoice is dead once it expired unpaid, and stays settled when it was paid`, async () => {
      // On a real node the second of them has to be paid within this.
      const expirySeconds = 10
      const unpaid = await world.lightning.createInvoice(anAsk({ expirySeconds }))
      const paid = await world.lightning.createInvoice(anAsk({ expirySeconds }))
      await world.pay(paid.bolt11)
      await world.makeExpire?.(expirySeconds)
      await until('the unpaid invoice to die', async () => {
        return (await world.lightning.lookupInvoice(unpaid.paymentHash)).state === 'dead'
      })
      assert.deepEqual(await world.lightning.lookupInvoice(paid.paymentHash), { state: 'settled' })
      await assert.rejects(world.pay(unpaid.bolt11))
      assert.deepEqual(await world.lightning.lookupInvoice(unpaid.paymentHash), {
        state: 'dead',
        isFinal: world.settleLate === undefined,
      })
    })

    test(`${name} calls an invoice settled that the node settles after a guess that it was dead`, async () => {
      const { settleLate } = world
      const { paymentHash } = await world.lightning.createInvoice(anAsk({ expirySeconds: 10 }))
      // A node with a final word never does.
      if (!settleLate) return
      await world.makeExpire?.(10)
      assert.deepEqual(await world.lightning.lookupInvoice(paymentHash), {
        state: 'dead',
        isFinal: false,
      })
      settleLate(paymentHash)
      assert.deepEqual(await world.lightning.lookupInvoice(paymentHash), { state: 'settled' })
    })

    test(`${name} throws for an invoice that it does not know, and does not call it dead`, async () => {
      await assert.rejects(world.lightning.lookupInvoice('ab'.repeat(32)), UnknownInvoice)
    })

    test(`${name} gives each of 20 invoices made at once its own payment hash`, async () => {
      const made = await Promise.all(
        Array.from({ length: 20 }, () => world.lightning.createInvoice(anAsk())),
      )
      assert.equal(new Set(made.map((each) => each.paymentHash)).size, 20)
      assert.equal(new Set(made.map((each) => each.bolt11)).size, 20)
    })

    test(`${name} refuses an amount and an expiry that no invoice can carry`, async () => {
      const whole = [0, -1, 1000.5, Number.NaN]
      for (const ask of [
        ...[...whole, Number.POSITIVE_INFINITY, 2 ** 53].map((amountMsat) => ({ amountMsat })),
        ...whole.map((expirySeconds) => ({ expirySeconds })),
      ]) {
        await assert.rejects(world.lightning.createInvoice(anAsk(ask)), RangeError)
      }
    })

    test(`${name} reports each settlement while it is watched, and no invoice that is only made`, async () => {
      const watching = watch(world)
      await watching.isUnderWay()
      const { paymentHash } = await world.lightning.createInvoice(anAsk())
      // Once word of a later payment has come, word of this one would have come as well.
      await watching.isUnderWay()
      assert.ok(!watching.told.has(paymentHash))
      await watching.end()
    })

    test(`${name} ends a watch on abort, and can be watched again`, async () => {
      for (let round = 0; round < 2; round++) {
        const watching = watch(world)
        await watching.isUnderWay()
        await watching.end()
      }
    })

    test(`${name} ends a watch at once whose signal has aborted already`, async () => {
      await isOver(world.lightning.watch(() => {}, AbortSignal.abort()))
    })
  })
}

function watch({ lightning, pay }: LightningUnderTest) {
  const told = new Set<string>()
  const stop = new AbortController()
  const ended = lightning.watch((paymentHash) => told.add(paymentHash), stop.signal)

  /** A watch cannot say when it has begun: it has when it tells of one of several payments. */
  async function isUnderWay(): Promise<void> {
    await until('a watch that tells of payments', async () => {
      const { bolt11, paymentHash } = await lightning.createInvoice(anAsk())
      await pay(bolt11)
      await until('word of it', () => told.has(paymentHash), { withinMs: 1_000 })
      return true
    })
  }

  async function end(): Promise<void> {
    stop.abort()
    await isOver(ended)
  }

  return { told, isUnderWay, end }
}

function anAsk(changes: Partial<InvoiceRequest> = {}): InvoiceRequest {
  return { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900, ...changes }
}

function hashOf(preimage: string): string {
  return createHash('sha256').update(Buffer.from(preimage, 'hex')).digest('hex')
}

async function isOver(work: Promise<void>): Promise<void> {
  let isDone = false
  const done = work.then(() => {
    isDone = true
  })
  await until('the end of a watch', () => isDone)
  await done
}
