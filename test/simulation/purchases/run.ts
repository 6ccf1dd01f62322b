/**
 * One run: buyers with the SDK, a store that outlives them, and wallets, at services of every kind. Processes are
 * killed at any step and begin again, two at once too; the network and the nodes do what they like. At the end all is
 * calm, and the books of the nodes must keep the promises.
 */
import { createHttp } from '../../../src/client/http.ts'
import { planOrder } from '../../../src/client/order-requests.ts'
import { createPayments } from '../../../src/client/payments.ts'
import type { PaymentQuote } from '../../../src/client/purchase.ts'
import type { PurchaseRecord, PurchaseStore } from '../../../src/client/record.ts'
import { type Wallet, WalletError } from '../../../src/client/wallet.ts'
import { payingWallet } from '../../../src/client/wallets/paying.ts'
import { createScheduler, type Owner, type Scheduler } from '../world/scheduler.ts'
import { enterWorld, type World } from '../world/world.ts'
import { callOver, type Weather } from './network.ts'
import { createNode, KINDS } from './node.ts'
import {
  createSeller,
  HOSTILITIES,
  type Kind,
  PRICE_SATS,
  rightClock,
  type Seller,
} from './seller.ts'

export type Promised =
  | 'one purchase pays once'
  | 'a day never exceeds its ceiling'
  | 'who paid an honest service has it'
  | 'nothing but the quoted price is paid'
  | 'no expired invoice is paid'
  | 'what counts as failed stays unpaid'
  | 'a run ends'

export type Violation = { promise: Promised; what: string }

export type RunResult = { seed: number; violations: Violation[]; paid: number; delivered: number }

/** Whose second invoice can be paid besides the first one. */
const OFFERS_ANOTHER: Kind[] = ['other invoices', 'late settlement']
const MINUTE = 60_000
const EXPIRY_MS = 15 * MINUTE
const STORMY_MS = 40 * MINUTE
const MAX_SATS = 100
const MAX_EVENTS = 400_000

export async function runSeed(seed: number): Promise<RunResult> {
  const scheduler = createScheduler(seed)
  enterWorld({ scheduler, logged: [] } as unknown as World)
  try {
    return await simulate(seed, scheduler)
  } finally {
    enterWorld(null)
  }
}

async function simulate(seed: number, scheduler: Scheduler): Promise<RunResult> {
  const { random } = scheduler
  /** Some runs are about the end of an invoice, and payments that begin just before and last longer. */
  const isLate = random.chance(0.3)
  const weather: Weather = {
    isCalm: false,
    busyRate: isLate ? 0.8 : random.pick([0.1, 0.3]),
    stuckRate: isLate ? 0.15 : 0.02,
    lossRate: random.pick([0, 0.02, 0.1, 0.3]),
    mostMs: random.pick([50, 500, 4_000]),
  }
  const kinds: Kind[] = [
    isLate ? random.pick(OFFERS_ANOTHER) : 'honest',
    random.pick(['honest', 'restored', ...HOSTILITIES]),
  ]
  const sellers = kinds.map((kind) => createSeller(scheduler, kind))
  const nodes = Array.from({ length: 2 }, (_, at) => {
    const kind = random.pick(KINDS)
    return createNode(scheduler, { kind, name: `${kind} ${at}`, weather, sellers })
  })
  const ceilingMsat = random.pick([40_000, 45_000, 80_000, 400_000, 2_000_000])
  const violations: Violation[] = []
  const say = (promise: Promised, what: string): void => void violations.push({ promise, what })
  const store = createStore(scheduler, {
    ceilingMsat,
    onFailed({ paymentHash }) {
      const payer = nodes.find((node) => node.mayPay(paymentHash))
      if (payer) say('what counts as failed stays unpaid', payer.name)
    },
  })
  /** Of the buyer's machine, which may be wrong by minutes, above all where the service does not tell the time. */
  const isClockWrong = random.chance(kinds.includes('silent polls') ? 0.8 : 0.3)
  const machineAheadMs = isClockWrong ? random.int(-20 * MINUTE, 20 * MINUTE) : 0
  /** Or be set between two processes. Further ahead, it would refuse every invoice. */
  const isClockSet = random.chance(isLate ? 0.5 : 0.2)
  const aheadNow = (): number => {
    if (!isClockSet) return machineAheadMs
    return random.chance(0.5) ? 0 : random.int(13 * MINUTE, EXPIRY_MS)
  }
  const purchases = Array.from({ length: random.int(1, 4) }, (_, at) => ({
    key: `purchase-${seed}-${at}`,
    seller: random.pick(sellers),
    home: random.pick(nodes),
  }))

  /** One process of the buyer. It ends by itself, or is killed. */
  function start(
    purchase: (typeof purchases)[number],
    lifeMs: number,
    dawdles = false,
  ): Promise<void> {
    const aheadMs = aheadNow()
    const process: Owner = { isDead: false, clock: () => aheadMs }
    return new Promise((resolve) => {
      const end = (): void => {
        process.isDead = true
        scheduler.forget(process)
        resolve()
      }
      scheduler.after(lifeMs, end, null)
      // People try another wallet when one does not answer.
      const node = !weather.isCalm && random.chance(0.1) ? random.pick(nodes) : purchase.home
      scheduler.as(process, () => void buy(purchase, node, dawdles).then(end, end))
    })
  }

  async function buy(
    { key, seller }: (typeof purchases)[number],
    node: (typeof nodes)[number],
    dawdles: boolean,
  ): Promise<void> {
    const wallet: Wallet = payingWallet(node.connect())
    const http = createHttp('https://shop.example', fetchOf(scheduler, weather, seller))
    const payments = createPayments(http, {
      maxSats: MAX_SATS,
      service: 'https://shop.example',
      store,
    })
    const isKnown = (await store.load(key)) !== null
    const signal = AbortSignal.timeout(random.int((dawdles ? 20 : 5) * MINUTE, 30 * MINUTE))
    /** Whoever must agree takes as long as the invoice allows. */
    const onInvoice = async ({ expiresAt }: PaymentQuote): Promise<void> => {
      const leftMs = Date.parse(expiresAt) - scheduler.wallNow(rightClock)
      if (dawdles) await scheduler.sleep(Math.max(1, leftMs - random.int(1, 30_000)))
    }
    if (isKnown && random.chance(0.3)) await payments.resume(key, { wallet, signal, onInvoice })
    else {
      const purchase = {
        planId: 'spark',
        idempotencyKey: key,
        wallet,
        signal,
        onInvoice,
      } as const
      await payments.buy(planOrder('catch', 'spark'), purchase)
    }
  }

  async function story(purchase: (typeof purchases)[number]): Promise<void> {
    while (scheduler.elapsed() < STORMY_MS) {
      const lives = random.chance(0.2) ? 2 : 1
      // A payment that begins just before its invoice ends lasts longer, and its process may not.
      const dawdles = random.chance(isLate ? 0.6 : 0.1)
      const life = (): number =>
        dawdles
          ? EXPIRY_MS + random.int(-20_000, 20_000)
          : random.chance(0.5)
            ? random.int(1, 10_000)
            : random.int(1, 20 * MINUTE)
      const processes = Array.from({ length: lives }, () => start(purchase, life(), dawdles))
      await Promise.all(processes)
      await scheduler.sleep(random.int(1, dawdles ? 5_000 : random.pick([5_000, 5 * MINUTE])))
    }
    weather.isCalm = true
    // Long enough for everything that was handed over to end, and for a second try.
    for (let again = 0; again < 4; again++) {
      await scheduler.sleep(15 * MINUTE)
      await start(purchase, 35 * MINUTE)
    }
  }

  let isOver = false
  const stories = Promise.all(purchases.map(story)).then(() => {
    isOver = true
  })
  const events = await scheduler.run(() => isOver, MAX_EVENTS)
  if (isOver) await stories
  else say('a run ends', `${events} events and no end`)

  const spent = nodes.flatMap((node) => node.spent)
  for (const { key, seller } of purchases) {
    const paid = spent.filter((payment) => payment.key === key)
    if (paid.length > 1) say('one purchase pays once', `${seller.kind}: ${paid.length} payments`)
    const record = store.records.get(key)
    const isHonest = seller.kind === 'honest'
    if (paid.length > 0 && isHonest && record?.state !== 'delivered') {
      say('who paid an honest service has it', `the record says ${record?.state}`)
    }
    const names = record?.invoices.some(({ bolt11 }) => bolt11 === paid[0]?.bolt11)
    if (paid.length > 0 && seller.kind === 'restored' && !(names && record?.state !== 'failed')) {
      say('who paid an honest service has it', `restored: the record says ${record?.state}`)
    }
    for (const { amountMsat, bolt11 } of paid) {
      const known = record?.invoices.find((invoice) => invoice.bolt11 === bolt11)
      const sold = seller.invoices.find((invoice) => invoice.bolt11 === bolt11)
      if (amountMsat !== PRICE_SATS * 1000 || known?.paymentHash !== sold?.paymentHash) {
        say('nothing but the quoted price is paid', `${seller.kind}: ${amountMsat} msat`)
      }
    }
  }
  const total = spent.reduce((sum, { amountMsat, feeMsat }) => sum + amountMsat + feeMsat, 0)
  if (total > ceilingMsat) {
    say('a day never exceeds its ceiling', `${total} msat of ${ceilingMsat}`)
  }
  for (const { handed } of nodes) {
    for (const [bolt11, at] of handed) {
      const sold = sellers.flatMap(({ invoices }) => invoices).find((one) => one.bolt11 === bolt11)
      // A request that was on its way may come a little late.
      if (sold && at > sold.expiresAt + MINUTE) {
        say('no expired invoice is paid', `${(at - sold.expiresAt) / 1000} s after its end`)
      }
    }
  }
  const delivered = [...store.records.values()].filter(({ state }) => state === 'delivered').length
  return { seed, violations, paid: spent.length, delivered }
}

/** A disk: what is written stays, and a process that dies in between has written it or not. */
function createStore(
  scheduler: Scheduler,
  { ceilingMsat, onFailed }: { ceilingMsat: number; onFailed(invoice: PaymentQuote): void },
) {
  const records = new Map<string, PurchaseRecord>()
  /** What each purchase may have spent, by its invoices. Only a wallet's no gives it back. */
  const reserved = new Map<string, number>()
  const sync = (): Promise<void> => scheduler.sleep(scheduler.random.int(1, 100))
  const store: PurchaseStore = {
    load: (key) => records.get(key) ?? null,
    async save(record) {
      await sync()
      const { idempotencyKey: key, state } = record
      if (record.revision !== (records.get(key)?.revision ?? 0) + 1) return false
      const last = record.invoices.at(-1)
      const of = `${key} ${last?.bolt11}`
      if (state === 'paying') {
        const asked = last?.reservedMsat ?? Number.NaN
        const others = [...reserved].reduce((sum, [at, msat]) => (at === of ? sum : sum + msat), 0)
        if (!(others + asked <= ceilingMsat))
          throw new WalletError('the budget is spent', 'not paid')
        reserved.set(of, asked)
      }
      if (state === 'failed') {
        reserved.delete(of)
        if (last) onFailed(last)
      }
      records.set(key, record)
      await sync()
      return true
    },
  }
  return { ...store, records }
}

function fetchOf(scheduler: Scheduler, weather: Weather, seller: Seller): typeof globalThis.fetch {
  return (input, init) => {
    const key = new Headers(init?.headers).get('idempotency-key') ?? ''
    const { pathname } = new URL(String(input))
    const work = (): Response => seller.handle(pathname, key)
    return callOver(scheduler, weather, { work, signal: init?.signal })
  }
}
