import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BudgetError } from '../../src/cli/exit.ts'
import { readBackup, restoreBackup } from '../../src/cli/vault/backup.ts'
import { budgetState, checkBudget, resetBudget } from '../../src/cli/vault/budget.ts'
import { openPurchases, vaultStore } from '../../src/cli/vault/purchases.ts'
import { vaultFile } from '../../src/cli/vault/vault.ts'
import type { PurchaseRecord, PurchaseState } from '../../src/client/index.ts'
import { purchase, quoteOf } from '../support/buying.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { paidInvoices, stuckService } from '../support/mcp-money.ts'
import { between } from '../support/serving.ts'
import { aUser } from '../support/user.ts'

const NOON = Date.UTC(2026, 10, 22, 12)
const DAY_MS = 86_400_000

/** A user's vault, and a clock that the test sets. */
async function aVault(t: After, maxSatsPerDay = 1000) {
  const clock = { at: NOON }
  const options = { folder: await temporaryFolder(t), now: () => clock.at, maxSatsPerDay }
  const store = vaultStore(options, {
    nameFor: (isTaken) => {
      for (let number = 1; ; number++) if (!isTaken(`hooks-${number}`)) return `hooks-${number}`
    },
    onDelivered: () => undefined,
  })
  const revisions = new Map<string, number>()
  return {
    clock,
    options,
    store,
    file: vaultFile(options.folder),
    /** Writes the next states of the purchase with this key, whose invoice may cost so much. */
    write(key: string, states: readonly PurchaseState[], sats: Sats): void {
      for (const state of states) {
        const revision = (revisions.get(key) ?? 0) + 1
        if (store.save(aRecord(key, { state, revision, ...sats }))) revisions.set(key, revision)
      }
    },
    spentSats: () => budgetState(options).spentMsat / 1000,
  }
}

type Sats = {
  price: number
  reserved?: number
  paidFee?: number
  bolt11?: string
  handedAt?: string
}

type Written = Sats & { state: PurchaseState; revision: number }

const aRecord = (key: string, written: Written): PurchaseRecord => ({
  version: 1,
  revision: written.revision,
  idempotencyKey: key,
  state: written.state,
  service: 'http://127.0.0.1',
  product: 'catch',
  planId: 'spark',
  requestSha256: '',
  maxSats: 1000,
  wallet: 'a wallet',
  ...(written.paidFee === undefined ? {} : { feeMsat: written.paidFee * 1000 }),
  invoices: [
    {
      orderId: 'order_1',
      product: 'catch',
      planId: 'spark',
      amountSats: written.price,
      bolt11: written.bolt11 ?? `lnbcrt-${key}`,
      paymentHash: 'ab'.repeat(32),
      expiresAt: '2026-11-22T12:15:00Z',
      network: 'regtest',
      memo: '',
      durationSeconds: 1,
      ...(written.reserved === undefined ? {} : { reservedMsat: written.reserved * 1000 }),
      ...(written.handedAt === undefined ? {} : { handedAt: written.handedAt }),
    },
  ],
})

/** For `assert.throws`: a refusal that says this. */
const refused =
  (says: RegExp) =>
  (error: unknown): true => {
    assert.ok(error instanceof BudgetError, String(error))
    assert.equal(error.outcome, 'not paid')
    assert.match(error.message, says)
    return true
  }

describe('the budget of a day', () => {
  test('a payment is reserved with its highest fee before it is written as paying, and only grows', async (t) => {
    const vault = await aVault(t)
    vault.write('a', ['quoted'], { price: 900 })
    assert.equal(vault.spentSats(), 0)
    vault.write('a', ['paying'], { price: 900, reserved: 950 })
    vault.write('a', ['paying'], { price: 900, reserved: 920 })
    assert.equal(vault.spentSats(), 950)
    assert.throws(
      () => vault.write('b', ['quoted', 'paying'], { price: 60, reserved: 61 }),
      refused(
        /The price is 60 sat and up to 1 sat of fees, and 50 of the day's 1000 sat are left, so nothing was paid.*MAYFLY_MAX_SATS_PER_DAY/,
      ),
    )
    assert.deepEqual(
      openPurchases(vault.options).map(({ record }) => record.state),
      ['paying', 'quoted'],
    )
    vault.write('a', ['paid'], { price: 900, reserved: 950, paidFee: 2 })
    assert.equal(vault.spentSats(), 950)
    vault.write('c', ['quoted', 'paying', 'paid'], { price: 10, paidFee: 5 })
    assert.equal(vault.spentSats(), 965)
    vault.write('c', ['delivered'], { price: 10 })
    assert.equal(vault.spentSats(), 965)
    assert.throws(() => checkBudget(vault.options, 36_000), refused(/ 35 of the day's 1000 sat/))
  })

  test('what failed and was paid after all counts on the day on which the wallet got it', async (t) => {
    const vault = await aVault(t)
    const handed = { price: 600, handedAt: new Date(NOON).toISOString() }
    vault.write('a', ['quoted', 'paying', 'failed'], handed)
    vault.clock.at = NOON + DAY_MS
    vault.write('a', ['paid'], handed)
    assert.equal(vault.spentSats(), 0)
    resetBudget(vault.options)
    vault.clock.at = NOON
    assert.equal(vault.spentSats(), 600)
  })

  for (const [says, spent, ...writes] of [
    ['what is tried again is reserved once', 600, ['a', ['quoted', 'paying', 'paying']]],
    ['what the wallet did not pay is given back', 0, ['a', ['quoted', 'paying', 'failed']]],
    ['a second try counts', 600, ['a', ['quoted', 'paying', 'failed', 'paying', 'paid']]],
    [
      'what was paid counts with its fee, though the wallet had said that it did not pay',
      604,
      ['a', ['quoted', 'paying', 'failed', 'paid'], { price: 600, paidFee: 4 }],
    ],
    ['what was begun elsewhere and paid counts', 600, ['a', ['paid']]],
    [
      'a cheap invoice under the text of one that was paid lowers nothing',
      601,
      ['a', ['quoted', 'paying', 'paid']],
      ['b', ['quoted', 'paying'], { price: 1, bolt11: 'lnbcrt-a' }],
    ],
    [
      'a cheap invoice under the text of one that was paid gives nothing back',
      601,
      ['a', ['quoted', 'paying', 'paid']],
      ['b', ['quoted', 'paying', 'paid', 'failed'], { price: 1, bolt11: 'lnbcrt-a' }],
    ],
  ] as const) {
    test(`of the budget: ${says}`, async (t) => {
      const vault = await aVault(t)
      for (const [key, states, sats = { price: 600 }] of writes) vault.write(key, states, sats)
      assert.equal(vault.spentSats(), spent)
    })
  }

  test('what a backup says was paid is given back by nobody, whatever is known of it here', async (t) => {
    const [here, there, before] = [await aVault(t), await aVault(t), await aVault(t)]
    for (const [vault, reserved] of [
      [here, 110],
      [there, 110],
      [before, 105],
    ] as const) {
      vault.write('one', ['quoted', 'paying'], { price: 100, reserved })
    }
    there.write('one', ['paid'], { price: 100, paidFee: 3 })
    for (const { options } of [there, before]) restoreBackup(here.options, readBackup(options))
    here.write('one', ['failed'], { price: 100 })
    assert.equal(here.spentSats(), 110)
  })

  test('a wallet that may pay an invoice twice has it counted twice', async (t) => {
    const vault = await aVault(t)
    vault.write('a', ['quoted', 'paying'], { price: 400, reserved: 400 })
    vault.write('a', ['paying'], { price: 400, reserved: 800 })
    assert.equal(vault.spentSats(), 800)
    assert.throws(() => vault.write('a', ['paying'], { price: 400, reserved: 1200 }), BudgetError)
  })

  test('a new day of UTC has the whole budget, and a clock that goes back gives no day anew', async (t) => {
    const vault = await aVault(t)
    const pay = (key: string, price: number) => vault.write(key, ['quoted', 'paying'], { price })
    pay('a', 1000)
    vault.clock.at += DAY_MS / 2 - 1
    assert.throws(() => pay('b', 1), BudgetError)
    vault.clock.at += 1
    pay('c', 1000)
    vault.clock.at -= DAY_MS
    assert.throws(() => pay('d', 1), refused(/Payments of a later day count too: the clock/))
    assert.deepEqual(budgetState(vault.options), {
      day: '2026-11-22',
      isClockBehind: true,
      spentMsat: 2_000_000,
    })
  })
})

test('of two writes of one revision one is refused, and changes nothing', async (t) => {
  const vault = await aVault(t)
  vault.write('a', ['quoted'], { price: 1 })
  const next = aRecord('a', { state: 'paying', revision: 2, price: 1 })
  assert.equal(vault.store.save(next), true)
  assert.equal(vault.store.save({ ...next, state: 'failed' }), false)
  assert.equal((await vault.store.load('a'))?.state, 'paying')
  assert.equal(vault.store.save({ ...next, idempotencyKey: 'b' }), false)
})

describe('the commands that pay', () => {
  test('eight purchases at once never pay more than the day allows', async (t) => {
    const { cli, server } = await aUser(t)
    const environment = { ...WITH_WALLET.environment, MAYFLY_MAX_SATS_PER_DAY: '550' }
    const ended = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        cli.run(['buy', 'catch', '--name', `inbox-${i}`], { environment }),
      ),
    )
    assert.deepEqual(ended.map(({ code }) => code).sort(), [
      ...Array(5).fill(0),
      ...Array(3).fill(3),
    ])
    for (const { code, err } of ended) {
      if (code === 3) assert.match(err, /50 of the day's 550 sat are left.*--resume inbox-\d+\n$/s)
    }
    assert.equal(await paidInvoices(server), 5)
    const shown = await cli.json(['budget'], { environment })
    assert.equal(shown.spentMsat, 500_000)
    assert.equal(shown.leftMsat, 50_000)
  })

  test('a purchase that is killed while it pays stays counted, and is not counted twice', async (t) => {
    const service = await stuckService(t, (path) => path === '/simulator/pay')
    const cli = await commandLine(t, service.url)
    const environment = { ...WITH_WALLET.environment, MAYFLY_MAX_SATS_PER_DAY: '150' }
    const killed = cli.start(['buy', 'catch', '--name', 'hooks'], { environment })
    await service.reached
    killed.child.kill('SIGKILL')
    await killed.ended
    assert.equal((await cli.json(['budget'], { environment })).spentMsat, 100_000)
    const second = ['buy', 'catch', '--name', 'other']
    const unasked = await cli.run(second, { environment })
    assert.equal(unasked.code, 3)
    assert.match(unasked.err, /hooks is the same, and may have been paid.*--beside hooks\n$/)
    const misnamed = await cli.run([...second, '--beside', 'hoks'], { environment })
    assert.equal(misnamed.code, 2)
    assert.match(misnamed.err, /^No unfinished purchase of the same is named hoks\. .*: hooks\n$/)
    const other = await cli.run([...second, '--beside', 'hooks'], { environment })
    assert.equal(other.code, 3)
    assert.match(other.err, /50 of the day's 150 sat are left/)

    service.open()
    const resumed = await cli.run(['buy', 'catch', '--resume', 'hooks'], { environment })
    assert.equal(resumed.code, 0, resumed.err)
    assert.equal((await cli.json(['budget'], { environment })).spentMsat, 100_000)
  })

  test('an invoice of anybody is paid within the budget, and the first purchase of a user is not refused', async (t) => {
    const { cli, server } = await aUser(t)
    const environment = { ...WITH_WALLET.environment, MAYFLY_MAX_SATS_PER_DAY: '199' }
    assert.equal((await cli.run(['buy', 'catch', '--name', 'hooks'], { environment })).code, 0)
    const { bolt11 } = quoteOf(await purchase(server, {}))
    const refusal = await cli.run(['pay', bolt11, '--json'], { environment })
    assert.equal(refusal.code, 3)
    assert.match(refusal.err, /The price is 100 sat, and 99 of the day's 199 sat are left/)
    assert.deepEqual(JSON.parse(refusal.out), { error: refusal.err.trim() })
    const reset = await cli.json(['budget', '--reset', '--yes'], { environment })
    assert.equal(reset.leftMsat, 199_000)
    assert.equal((await cli.run(['pay', bolt11], { environment })).code, 0)
  })

  test('an invoice of which the wallet does not say whether it paid ends neither as paid nor as not paid', async (t) => {
    const { cli, url, server } = await aUser(t)
    const silent = await between(t, url, (path, response) => {
      if (path !== '/simulator/pay') return false
      response.writeHead(500).end()
      return true
    })
    const { bolt11 } = quoteOf(await purchase(server, {}))
    const environment = { ...WITH_WALLET.environment, MAYFLY_URL: silent }
    const { code, err } = await cli.run(['pay', bolt11], { environment })
    assert.equal(code, 1)
    assert.match(err, /^The wallet does not say whether it paid: .* It may have been paid\./)
    const [, name] = /To give it up: mayfly forget (pay-[0-9a-f]{16})$/m.exec(err) ?? []
    assert.deepEqual(
      openPurchases(cli).map((open) => [open.name, open.isMine]),
      [[name, false]],
    )
    const again = await cli.run(['pay', bolt11], { environment })
    assert.deepEqual([again.code, /It may have been paid/.test(again.err)], [1, true], again.err)
    assert.equal((await cli.json(['budget'])).spentMsat, 100_000)
    assert.equal((await cli.run(['forget', String(name), '--yes'])).code, 0)
  })
})
