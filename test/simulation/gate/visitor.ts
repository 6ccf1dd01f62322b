/**
 * Visitors of a project's server: they pay in time, late, twice or never, prove it in each way that there is, lose
 * answers, and try a proof again and for another request.
 */

import { paymentAuthorization, paymentChallenges } from '../../support/payer.ts'
import { askGate } from './exchange.ts'
import type { Shop, Visited } from './shop.ts'
import { type GateQuote, type Project, payIn, type Town, type Wanted } from './town.ts'

const MAX_VISITS = 300
/** Once all is calm, some still wait for a quarter of an hour: for the time of a receipt, or after a step back of the clock. */
const PAUSE_MS = 5_000

type Proof = Record<string, string>
type Offer = { quote: GateQuote; credential: ((preimage: string) => string) | null }

export const wantedOf = (town: Town, { routes }: Project, name: string): Wanted => {
  const { random } = town.run.world.scheduler
  const route = random.pick(routes)
  const path = route.pattern.replace('*', name) + random.pick(['', '?size=2'])
  return { route, path, body: route.method === 'POST' ? `{"name":"${name}"}` : '' }
}

export async function visitorStory(
  town: Town,
  who: string,
  { project, shop }: { project: Project; shop: Shop },
): Promise<void> {
  const { run } = town
  const { ledger } = run
  const { random, sleep } = run.world.scheduler
  const wanted = wantedOf(town, project, who)
  const asksForChallenge = random.chance(0.5)
  /** Relies on the provider for a while, as visitors do whose wallet shows no preimage. */
  let trusting = random.chance(0.3) ? random.int(2, 12) : 0
  let offer = null as Offer | null
  let preimage: string | null = null
  let receipt: string | null = null

  for (let visits = 0; visits < MAX_VISITS; visits++) {
    const shown = proof()
    const visited = await shop.visit(who, wanted, shown)
    if (visited !== null && (await take(visited, shown))) return
    await sleep(run.isCalm() ? PAUSE_MS : random.next() * 1_500)
  }
  const what = preimage === null ? 'rest is reached' : 'paid means a receipt'
  ledger.break(what, `${who} visited ${MAX_VISITS} times for ${offer?.quote.intentId}`)

  function proof(): Proof {
    if (preimage === null || offer === null)
      return asksForChallenge ? { 'x-payment-protocol': 'payment' } : {}
    const { quote, credential } = offer
    if (receipt) return { 'gate-receipt': receipt }
    if (credential) return { authorization: credential(preimage) }
    if (trusting-- > 0) return { 'x-gate-intent': quote.intentId }
    return { 'x-gate-intent': quote.intentId, 'x-gate-preimage': preimage }
  }

  /** @returns whether the visitor is done. */
  async function take(visited: Visited, shown: Proof): Promise<boolean> {
    const { status, text } = visited
    switch (status) {
      case 402:
        return takeOffer(visited, shown)
      case 200:
        await tryAgain(shown)
        return true
      case 409:
        return takeUsed(text)
      case 400:
        // The operator is changing the price of the route.
        return preimage === null && random.chance(0.3)
      case 403:
        // A receipt that was signed by a clock that was ahead is not valid yet.
        if (!town.hasJumps) ledger.break('paid means a receipt', `${who} was refused: ${text}`)
        return false
      case 500:
      case 503:
        return preimage === null && !run.isCalm() && random.chance(0.02)
      default:
        ledger.break('answers make sense', `${who}: ${status} ${text}`)
        return true
    }
  }

  async function takeOffer(visited: Visited, shown: Proof): Promise<boolean> {
    const quote = JSON.parse(visited.text) as GateQuote & { status?: unknown }
    if (preimage !== null) {
      const isProven = Object.keys(shown).join() !== 'x-gate-intent'
      if (isProven || quote.bolt11 !== undefined)
        ledger.break(
          'paid means a receipt',
          `${who} has paid, and is asked to pay: ${visited.text}`,
        )
      return false
    }
    offer = { quote, credential: credentialOf(visited) }
    const mood = random.next()
    if (mood < 0.1) return true
    if (mood < 0.25) await sleep(random.next() * 100_000)
    else if (mood < 0.35) return false
    preimage = await payIn(town, quote.bolt11)
    ledger.note(`${who} pays ${quote.paymentHash}: ${preimage !== null}`)
    if (preimage !== null && random.chance(0.1)) await payIn(town, quote.bolt11)
    if (preimage === null) return false
    if (random.chance(0.2)) void shop.visit(`${who} again`, wanted, proof())
    if (random.chance(0.2)) await tryAnother(proof())
    if (random.chance(0.3)) receipt = await proveWithoutServer()
    return false
  }

  /** Somebody has been let in for this payment: this visitor, whose answer was lost. */
  function takeUsed(text: string): boolean {
    if (text.includes('request in progress')) return false
    const runs = town.runs.get(offer?.quote.intentId ?? '')
    if (runs) return true
    // Without a run nothing was used, as far as the server remembers.
    ledger.break('paid means a receipt', `${who} was refused, and nothing ran: ${text}`)
    return true
  }

  /** A visitor with a credential needs no server of the project to get its receipt. */
  async function proveWithoutServer(): Promise<string | null> {
    if (preimage === null || !offer?.credential) return null
    const { quote, credential } = offer
    const answer = await askGate(town, who, {
      project,
      method: 'POST',
      target: `/api/gate/intents/${quote.intentId}/prove`,
      headers: {
        authorization: credential(preimage),
        'content-type': 'application/json',
        'x-gate-project': project.projectId,
        'x-gate-method': quote.method,
        'x-gate-path': quote.path,
      },
      body: JSON.stringify({ preimage }),
    })
    return answer?.lines('gate-receipt')[0] ?? null
  }

  /** The same proof again, and for another request: the shop watches that neither runs anything. */
  async function tryAgain(shown: Proof): Promise<void> {
    if (!random.chance(0.4)) return
    await shop.visit(`${who} replays`, wanted, shown)
    await tryAnother(shown)
  }

  async function tryAnother(shown: Proof): Promise<void> {
    const path = wanted.path.split('?')[0] ?? ''
    const others = [
      { ...wanted, path: `${path}?size=9` },
      ...(wanted.body === '' ? [] : [{ ...wanted, body: '{"name":"another"}' }]),
    ]
    const other = await shop.visit(`${who} tries another`, random.pick(others), shown)
    if (other?.status === 200)
      ledger.break('a receipt opens its own request', `${who} got another request than ${path}`)
    const isProven = Object.keys(shown).join() !== 'x-gate-intent'
    if (other?.status === 402 && isProven)
      ledger.break('paid means a receipt', `${who} has paid, and is asked to pay: ${other.text}`)
  }
}

/** The credential of a challenge, by the preimage that is paid for. */
function credentialOf({ headers }: Visited): ((preimage: string) => string) | null {
  const lines = headers.get('www-authenticate')
  const [challenge] = lines === null ? [] : paymentChallenges([lines])
  return challenge ? (preimage) => paymentAuthorization({ challenge, payload: { preimage } }) : null
}
