/**
 * The Lightning Address of a project: an LNURL server that is not ours (LUD-06, LUD-16), over a node that is not
 * ours. Some refuse, come late, hand out an invoice that they must not, or are wrong about payments (LUD-21).
 */
import type { Invoices, SimulatedInvoice } from '../world/invoices.ts'
import type { Received, Reply } from '../world/outbound.ts'
import { world } from '../world/world.ts'

export type Payee = {
  address: string
  /** The payment hashes of the invoices that it has handed out, but for those that nobody may be shown. */
  offered: Set<string>
  /** The payment hashes that it has called settled, in an answer that contradicts nothing. */
  called: Set<string>
}

/** What is wrong with an answer to step 2. */
const FAULTS = [
  'refused',
  'broken',
  'no json',
  'too late',
  'another sum',
  'any sum',
  'another network',
  'used before',
  'ends too soon',
  'lives too long',
  'old',
] as const
type Fault = (typeof FAULTS)[number]

/** What is wrong with an invoice whatever it is over. */
const UNFIT: ReadonlySet<Fault> = new Set([
  'any sum',
  'another network',
  'ends too soon',
  'lives too long',
  'old',
] as const)

/** How it tells of payments. A liar says that they have come, and who forgets that they have not. */
const MANNERS = [
  'silent',
  'honest',
  'honest',
  'late',
  'liar',
  'forgets',
  'confused',
  'confused',
] as const

const EXPIRY_SECONDS = 120
/** Longer than the service waits. */
const TOO_LATE_MS = 12_000

/** @param invoices of the node that all payees share. */
export function openPayee(host: string, invoices: Invoices): Payee {
  const { scheduler, outside } = world()
  const { random } = scheduler
  const metadata = JSON.stringify([['text/plain', `Pay ${host}`]])
  const failing = random.pick([0, 0.1, 0.4])
  const manner = random.pick(MANNERS)
  const description = random.pick([{ descriptionHash: 'ab'.repeat(32) }, { description: 'GATE' }])
  const payee: Payee = { address: `pay@${host}`, offered: new Set(), called: new Set() }

  const json = (body: object, status = 200): Reply => ({ status, body: JSON.stringify(body) })

  async function answer({ url }: Received): Promise<Reply> {
    if (url.pathname === '/.well-known/lnurlp/pay') {
      return json({
        tag: 'payRequest',
        callback: `https://${host}/invoice`,
        metadata,
        minSendable: 1_000,
        maxSendable: 100_000_000,
      })
    }
    if (url.pathname === '/invoice') return invoice(Number(url.searchParams.get('amount')))
    return verify(url.pathname.split('/').at(-1) ?? '')
  }

  async function invoice(amountMsat: number): Promise<Reply> {
    const fault = random.chance(failing) ? random.pick(FAULTS) : null
    if (fault === 'refused') return json({ status: 'ERROR', reason: 'no liquidity' })
    if (fault === 'broken') return { status: 500, body: 'no' }
    if (fault === 'no json') return { status: 200, body: '<html>' }
    if (fault === 'too late') await scheduler.sleep(TOO_LATE_MS)
    const made = madeWith(fault, amountMsat)
    const verify =
      manner === 'silent' ? {} : { verify: `https://${host}/verify/${made.paymentHash}` }
    return json({ pr: made.bolt11, routes: [], ...verify })
  }

  function madeWith(fault: Fault | null, amountMsat: number): SimulatedInvoice {
    const earlier = [...payee.offered].map((each) => invoices.all.get(each) as SimulatedInvoice)
    const same = earlier.filter((each) => each.amountMsat === amountMsat)
    if (fault === 'used before' && same.length > 0) return random.pick(same)
    const timestamp = Math.floor(scheduler.wallNow() / 1000)
    const made = invoices.make({
      amountMsat,
      expirySeconds: EXPIRY_SECONDS,
      ...description,
      ...(fault === 'another sum' ? { amountMsat: amountMsat * random.pick([2, 0.5]) } : {}),
      ...(fault === 'any sum' ? { amountMsat: null } : {}),
      ...(fault === 'another network' ? { network: 'mainnet' } : {}),
      ...(fault === 'ends too soon' ? { expirySeconds: 30 } : {}),
      ...(fault === 'lives too long' ? { expirySeconds: 7 * 86_400 } : {}),
      ...(fault === 'old' ? { timestamp: timestamp - 3_600, expirySeconds: 3_600 + 200 } : {}),
    })
    if (fault === null || !UNFIT.has(fault)) payee.offered.add(made.paymentHash)
    return made
  }

  async function verify(paymentHash: string): Promise<Reply> {
    const invoice = invoices.all.get(paymentHash)
    if (!invoice) return json({ status: 'ERROR', reason: 'Not found' }, 404)
    if (manner === 'late') await scheduler.sleep(random.next() * TOO_LATE_MS)
    const isPaid = invoice.state === 'settled'
    if (manner === 'forgets' && random.chance(0.4)) {
      return random.pick([json({ status: 'ERROR' }, 404), json({ status: 'OK', settled: false })])
    }
    if (manner === 'confused' && random.chance(0.8)) return wrong(invoice)
    const isSettled = isPaid || (manner === 'liar' && random.chance(0.3))
    if (isSettled) payee.called.add(paymentHash)
    const shown = isPaid && random.chance(0.5) ? invoice.preimage : null
    const { bolt11: pr } = invoice
    return json({ status: 'OK', settled: isSettled, preimage: shown, pr })
  }

  /** What nobody may take for a payment of this invoice. */
  function wrong({ bolt11 }: SimulatedInvoice): Reply {
    const others = [...invoices.all.values()].filter((one) => one.bolt11 !== bolt11)
    const preimage = Buffer.from(random.bytes(32)).toString('hex')
    const other = others.length > 0 ? random.pick(others) : null
    if (other === null) return json({ status: 'OK', settled: true, preimage, pr: bolt11 })
    return random.pick([
      json({ status: 'OK', settled: true, preimage, pr: bolt11 }),
      json({ status: 'OK', settled: true, preimage: other.preimage }),
      json({ status: 'OK', settled: true, preimage: null, pr: other.bolt11 }),
      json({ status: 'ERROR', settled: true }),
    ])
  }

  outside.hosts.set(host, answer)
  return payee
}
