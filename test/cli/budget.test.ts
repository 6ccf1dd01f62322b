import assert from 'node:assert/strict'
import { mkdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import {
  beginBudget,
  budgetFile,
  budgetState,
  type Payable,
  reserve,
  resetBudget,
} from '../../src/cli/budget.ts'
import { budgeted } from '../../src/cli/budgeted-wallet.ts'
import { BudgetError } from '../../src/cli/exit.ts'
import { type Wallet, WalletError } from '../../src/client/wallet.ts'
import { anInvoice } from '../support/an-invoice.ts'
import { between } from '../support/between.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'

const NOON = Date.UTC(2026, 10, 22, 12)
const DAY_MS = 86_400_000

/** A user's folder, and a clock that the test sets. */
async function aBudget(t: After, maxSatsPerDay = 1000) {
  const clock = { at: NOON }
  const options = { folder: await temporaryFolder(t), now: () => clock.at, maxSatsPerDay }
  return {
    ...options,
    clock,
    options,
    reserve: (hash: string, priceSats: number, maxFeeSats = 0) =>
      reserve(options, payable(hash, priceSats, maxFeeSats)),
    spentSats: () => budgetState(options).spentMsat / 1000,
    /** As after a purchase. */
    savePurchase() {
      mkdirSync(join(options.folder, 'capabilities'), { recursive: true })
      writeFileSync(join(options.folder, 'capabilities', 'hooks.json'), '{}')
    },
  }
}

const payable = (hash: string, priceSats: number, maxFeeSats: number): Payable => ({
  paymentHash: hash,
  amountMsat: priceSats * 1000,
  maxFeeMsat: maxFeeSats * 1000,
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
  test('a payment is reserved with the highest fee, and settled with the fee that was paid', async (t) => {
    const budget = await aBudget(t)
    const first = budget.reserve('a', 900, 50)
    assert.equal(budget.spentSats(), 950)
    assert.throws(
      () => budget.reserve('b', 60, 1),
      refused(
        /The price is 60 sat and up to 1 sat of fees, and 50 of the day's 1000 sat are left, so nothing was paid.*MAYFLY_MAX_SATS_PER_DAY/,
      ),
    )
    first.settle(2_500)
    assert.equal(budget.spentSats(), 902.5)
    budget.reserve('b', 97, 0.5)
    assert.equal(budget.spentSats(), 1000)
    assert.throws(() => budget.reserve('c', 1), refused(/ 0 of the day's 1000 sat are left/))
  })

  test('a wallet that does not say its fee has the whole limit counted', async (t) => {
    const budget = await aBudget(t)
    budget.reserve('a', 100, 10).settle(undefined)
    assert.equal(budget.spentSats(), 110)
  })

  test('a payment that certainly failed is free again, and no other attempt with it', async (t) => {
    const budget = await aBudget(t)
    const [one, two] = [budget.reserve('a', 600), budget.reserve('a', 600)]
    assert.equal(budget.spentSats(), 600)
    one.release()
    assert.equal(budget.spentSats(), 600)
    assert.throws(() => budget.reserve('b', 600), BudgetError)
    two.release()
    assert.equal(budget.spentSats(), 0)
  })

  test('a payment that another attempt has made stays counted where one fails', async (t) => {
    const budget = await aBudget(t)
    const [one, two] = [budget.reserve('a', 600), budget.reserve('a', 600)]
    one.settle(0)
    two.release()
    assert.equal(budget.spentSats(), 600)
    // It is paid already, so to ask the wallet once more costs nothing.
    budget.reserve('a', 600, 500).settle(0)
    assert.equal(budget.spentSats(), 600)
  })

  test('a new day of UTC has the whole budget, and a clock that goes back gives no day anew', async (t) => {
    const budget = await aBudget(t)
    budget.reserve('a', 1000)
    budget.clock.at += DAY_MS / 2 - 1
    assert.throws(() => budget.reserve('b', 1), BudgetError)
    budget.clock.at += 1
    budget.reserve('b', 1000)
    budget.clock.at -= DAY_MS
    assert.throws(() => budget.reserve('c', 1), refused(/clock of this machine is behind/))
    assert.deepEqual(budgetState(budget.options), {
      day: '2026-11-23',
      isClockBehind: true,
      isLost: false,
      spentMsat: 1_000_000,
    })
  })

  test('a missing file beside saved purchases counts as spent until the next day', async (t) => {
    const budget = await aBudget(t)
    beginBudget(budget.options)
    budget.savePurchase()
    budget.reserve('a', 10)
    rmSync(budgetFile(budget.folder))
    assert.equal(budgetState(budget.options).isLost, true)
    const missing = refused(/was missing beside saved purchases.*mayfly budget reset/)
    assert.throws(() => budget.reserve('b', 1), missing)
    assert.throws(() => budget.reserve('b', 1), missing)
    budget.clock.at += DAY_MS
    budget.reserve('b', 1)
  })

  test('an emptied file beside saved purchases counts as spent too', async (t) => {
    const budget = await aBudget(t)
    budget.savePurchase()
    writeFileSync(budgetFile(budget.folder), '')
    assert.throws(() => budget.reserve('b', 1), refused(/was missing beside saved purchases/))
  })

  test('a damaged, foreign or unreadable file pays nothing until it is reset', async (t) => {
    const budget = await aBudget(t)
    const file = budgetFile(budget.folder)
    for (const damage of [
      () => writeFileSync(file, 'not a database, but longer than its header'.repeat(100)),
      () => truncateSync(file, statSync(file).size - 4096),
    ]) {
      resetBudget(budget.options)
      budget.reserve('a', 1)
      damage()
      const says = refused(/budget\.db .*mayfly budget reset/)
      assert.throws(() => budget.reserve('b', 1), says)
      assert.throws(() => budgetState(budget.options), says)
    }
    rmSync(file)
    mkdirSync(file)
    assert.throws(() => budget.reserve('b', 1), refused(/nothing is paid/))
  })

  test('only its user can read the file', async (t) => {
    const budget = await aBudget(t)
    budget.reserve('a', 1)
    assert.equal(statSync(budgetFile(budget.folder)).mode & 0o777, 0o600)
  })
})

describe('a wallet within the budget', () => {
  const bolt11 = anInvoice(100_000)

  test('a wallet that may have paid keeps its reservation, and one that certainly did not gives it back', async (t) => {
    const budget = await aBudget(t)
    for (const [outcome, spent] of [
      ['not paid', 0],
      ['unknown', 105],
    ] as const) {
      const wallet: Wallet = {
        pay: () => Promise.reject(new WalletError('no', outcome)),
        maxFeeMsat: () => 5_000,
      }
      await assert.rejects(budgeted(wallet, budget.options).pay(bolt11), WalletError)
      assert.equal(budget.spentSats(), spent)
    }
  })

  test('a wallet is not asked above the budget', async (t) => {
    const budget = await aBudget(t, 99)
    const wallet: Wallet = { pay: () => assert.fail('the wallet was asked') }
    await assert.rejects(
      budgeted(wallet, budget.options).pay(bolt11),
      refused(/The price is 100 sat, and 99 of/),
    )
  })

  test('a payment is not lost to its caller where it cannot be written down', async (t) => {
    const budget = await aBudget(t)
    const wallet: Wallet = {
      async pay() {
        writeFileSync(budgetFile(budget.folder), 'damaged meanwhile'.repeat(100))
        return { preimage: '00' }
      },
    }
    assert.deepEqual(await budgeted(wallet, budget.options).pay(bolt11), { preimage: '00' })
  })
})

describe('the commands that pay', () => {
  test('twenty purchases at once never pay more than the day allows', async (t) => {
    const { url, databaseUrl } = await startServer(t)
    const cli = await commandLine(t, url)
    const environment = { ...WITH_WALLET.environment, MAYFLY_MAX_SATS_PER_DAY: '550' }
    const ended = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        cli.run(['buy', 'catch', '--name', `inbox-${i}`], { environment }),
      ),
    )
    assert.deepEqual(ended.map(({ code }) => code).sort(), [
      ...Array(5).fill(0),
      ...Array(15).fill(3),
    ])
    for (const { code, err } of ended) {
      if (code === 3) assert.match(err, /50 of the day's 550 sat are left.*--resume inbox-\d+\n$/s)
    }
    const paid = "select payment_hash from simulator_invoice where state = 'settled'"
    assert.equal((await query({ databaseUrl }, paid)).length, 5)
    const shown = await cli.json(['budget'], { environment })
    assert.equal(shown.spentMsat, 500_000)
    assert.equal(shown.leftMsat, 50_000)
  })

  test('a purchase that is killed while it pays stays counted, and is not counted twice', async (t) => {
    const { url } = await startServer(t)
    let isStuck = true
    let isAsked = (): void => undefined
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve
    })
    const through = await between(t, url, (path) => {
      if (path !== '/simulator/pay' || !isStuck) return false
      isAsked()
      return true
    })
    const cli = await commandLine(t, through)
    const environment = { ...WITH_WALLET.environment, MAYFLY_MAX_SATS_PER_DAY: '150' }
    const killed = cli.start(['buy', 'catch', '--name', 'hooks'], { environment })
    await asked
    killed.child.kill('SIGKILL')
    await killed.ended
    assert.equal((await cli.json(['budget'], { environment })).spentMsat, 100_000)
    const other = await cli.run(['buy', 'catch', '--name', 'other'], { environment })
    assert.equal(other.code, 3)
    assert.match(other.err, /50 of the day's 150 sat are left/)

    isStuck = false
    const resumed = await cli.run(['buy', 'catch', '--resume', 'hooks'], { environment })
    assert.equal(resumed.code, 0, resumed.err)
    assert.equal((await cli.json(['budget'], { environment })).spentMsat, 100_000)
  })

  test('an invoice of anybody is paid within the budget, and the first purchase of a user is not refused', async (t) => {
    const { url, mayfly } = await startServer(t)
    const cli = await commandLine(t, url)
    const environment = { ...WITH_WALLET.environment, MAYFLY_MAX_SATS_PER_DAY: '199' }
    assert.equal((await cli.run(['buy', 'catch', '--name', 'hooks'], { environment })).code, 0)
    const bolt11 = await new Promise<string>((resolve) => {
      const cancel = new AbortController()
      mayfly
        .buyCatch({
          planId: 'spark',
          signal: cancel.signal,
          onInvoice: (quote) => {
            resolve(quote.bolt11)
            cancel.abort()
          },
        })
        .catch(() => undefined)
    })
    const refusal = await cli.run(['pay', bolt11, '--json'], { environment })
    assert.equal(refusal.code, 3)
    assert.match(refusal.err, /The price is 100 sat, and 99 of the day's 199 sat are left/)
    assert.deepEqual(JSON.parse(refusal.out), { error: refusal.err.trim() })
    const reset = await cli.json(['budget', 'reset'], { environment })
    assert.equal(reset.leftMsat, 199_000)
    assert.equal((await cli.run(['pay', bolt11], { environment })).code, 0)
  })

  test('a service that asks for more than its catalogue says is not paid', async (t) => {
    const { url } = await startServer(t)
    const catalog = JSON.parse(await (await fetch(`${url}/api/catalog`)).text())
    catalog.products.catch.plans[0].priceSats = 99
    const through = await between(t, url, (path, response) => {
      if (path !== '/api/catalog') return false
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(catalog))
      return true
    })
    const cli = await commandLine(t, through)
    const refusal = await cli.run(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
    assert.equal(refusal.code, 3)
    assert.match(refusal.err, /asks for 100 sat, and its catalogue says 99\. Nothing was paid/)
    assert.equal((await cli.json(['budget'])).spentMsat, 0)
  })

  test('doctor finds a budget that stops every payment', async (t) => {
    const { url, file } = await startServer(t)
    const cli = await commandLine(t, url)
    mkdirSync(cli.folder, { recursive: true })
    writeFileSync(budgetFile(cli.folder), 'not a database, but longer than its header'.repeat(100))
    const environment = { MAYFLY_DATABASE_URL: `sqlite:${file}`, ...WITH_WALLET.environment }
    const { code, out } = await cli.run(['doctor'], { environment })
    assert.equal(code, 1)
    assert.match(out, /"budget","state":"bad","says":"The budget cannot be read/)
  })
})
