/**
 * Projects that speak to the service themselves: the same key again, at once and from elsewhere, proofs in each form,
 * proofs of others, polls, and receipts that are given back.
 */

import { paymentAuthorization, paymentChallenges } from '../../support/payer.ts'
import { phraseOf } from '../run-context.ts'
import { uuidV4 } from '../world/globals.ts'
import type { Answer } from '../world/service.ts'
import { askGate } from './exchange.ts'
import { type GateAuthorization, type GateQuote, type Project, payIn, type Town } from './town.ts'
import { wantedOf } from './visitor.ts'

const MAX_ATTEMPTS = 300
/** Once all is calm, a payment may still wait a quarter of an hour, after a step back of the clock. */
const PAUSE_MS = 5_000
const ADDRESSES = ['192.0.2.81', '198.51.100.82']

export async function clientStory(town: Town, who: string, project: Project): Promise<void> {
  const { run } = town
  const { ledger } = run
  const { random, sleep } = run.world.scheduler
  const { route, path, body } = wantedOf(town, project, who)
  const key = uuidV4()
  let quoted = null as { quote: GateQuote; challenge: Answer | null } | null
  let preimage: string | null = null
  /** Receipts that it will give back, as a server does that fails. */
  let failures = random.pick([0, 0, 1, 2, 3])

  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const isDone = await step()
    if (isDone) return
    const pause = random.chance(0.9) ? random.next() * 1_000 : random.next() * 10_000
    await sleep(run.isCalm() ? PAUSE_MS : pause)
  }
  const what = preimage === null ? 'rest is reached' : 'paid means a receipt'
  ledger.break(what, `${who} has asked ${MAX_ATTEMPTS} times for ${quoted?.quote.intentId}`)

  async function step(): Promise<boolean> {
    if (quoted === null || (preimage === null && random.chance(0.3))) return open()
    if (preimage === null) return decide(quoted.quote)
    if (random.chance(0.2)) return open()
    return takeProof(await prove(preimage))
  }

  /** Opens the intent, or is shown it again. */
  async function open(): Promise<boolean> {
    if (random.chance(0.2)) void ask(path)
    // A key that has its intent is refused for another request.
    if (quoted !== null && random.chance(0.1)) await ask(`${path.split('?')[0]}?size=9`)
    const answer = await ask(path)
    if (answer === null) return false
    const { status, text } = answer
    if (status === 402) {
      const quote = JSON.parse(text) as GateQuote
      const isChallenge = answer.lines('www-authenticate').length > 0
      quoted = { quote, challenge: isChallenge ? answer : (quoted?.challenge ?? null) }
      if (quote.settled && random.chance(0.5)) await poll()
      return false
    }
    return isRefused(answer)
  }

  function isRefused(answer: Answer): boolean {
    const phrase = phraseOf(answer)
    const isLater = answer.status === 429 || answer.status === 503
    if (isLater || (answer.status === 500 && run.world.disk.failing > 0)) return false
    // Its operator changes the route, the key or the credits, or has suspended it.
    const passes = ['invalid binding', 'invalid project capability', 'no credits']
    if (!passes.includes(phrase)) {
      ledger.break('answers make sense', `${who}: ${answer.status} ${answer.text}`)
      return true
    }
    return phrase === 'no credits' && preimage === null && random.chance(0.2)
  }

  function ask(asked: string): Promise<Answer | null> {
    return askGate(town, who, {
      project,
      method: 'POST',
      target: '/api/gate/intents',
      headers: {
        ...bearer(),
        'idempotency-key': key,
        'x-gate-project': project.projectId,
        'x-gate-route': route.routeId,
        'x-gate-method': route.method,
        'x-gate-path': asked,
        ...(body === '' ? {} : { 'content-type': 'application/octet-stream' }),
        ...(random.chance(0.5) ? { 'x-payment-protocol': 'payment' } : {}),
      },
      ...(body === '' ? {} : { body }),
      from: random.pick(ADDRESSES),
    })
  }

  async function decide(quote: GateQuote): Promise<boolean> {
    const mood = random.next()
    if (mood < 0.1) return true
    if (mood < 0.2) await sleep(random.next() * 100_000)
    if (random.chance(0.2)) await poll()
    if (random.chance(0.2)) await tryAnother(quote)
    preimage = await payIn(town, quote.bolt11)
    ledger.note(`${who} pays ${quote.paymentHash}: ${preimage !== null}`)
    return preimage === null
  }

  /** A preimage of nothing, or of what somebody else has paid. */
  async function tryAnother(quote: GateQuote): Promise<void> {
    const paid = [...town.preimages].filter(([hash]) => hash !== quote.paymentHash)
    const guess = Buffer.from(random.bytes(32)).toString('hex')
    const other = paid.length > 0 && random.chance(0.5) ? random.pick(paid)[1] : guess
    await prove(other)
  }

  async function prove(shown: string): Promise<Answer | null> {
    if (quoted === null) return null
    const { quote, challenge } = quoted
    const { intentId, method, path: bound } = quote
    const credential = challenge && random.chance(0.5) ? credentialOf(challenge, shown) : null
    // A credential is good without the project's key, for the request that it was made for.
    const authorization = credential
      ? { authorization: credential, 'x-gate-method': method, 'x-gate-path': bound }
      : bearer()
    const answer = await askGate(town, who, {
      project,
      method: 'POST',
      target: `/api/gate/intents/${intentId}/prove`,
      headers: {
        ...authorization,
        'x-gate-project': project.projectId,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ preimage: shown }),
      from: random.pick(ADDRESSES),
    })
    if (credential && answer?.status === 401 && shown === preimage)
      ledger.break(
        'paid means a receipt',
        `${who} has a credential for ${intentId}: ${answer.text}`,
      )
    return answer
  }

  function poll(): Promise<Answer | null> {
    return askGate(town, who, {
      project,
      target: `/api/gate/intents/${quoted?.quote.intentId}`,
      headers: bearer(),
      from: random.pick(ADDRESSES),
    })
  }

  /** @returns whether it has its receipt, and gives none back any more. */
  async function takeProof(answer: Answer | null): Promise<boolean> {
    if (answer === null) return false
    if (answer.status !== 200) {
      // `askGate` has judged a refusal of a right proof.
      if (answer.status !== 402) isRefused(answer)
      return false
    }
    const { receiptId, intentId } = JSON.parse(answer.text) as GateAuthorization
    if (random.chance(0.5)) await poll()
    if (failures === 0) return !random.chance(0.3)
    const given = await askGate(town, who, {
      project,
      method: 'POST',
      target: `/api/gate/intents/${intentId}/give-back`,
      headers: { ...bearer(), 'content-type': 'application/json' },
      body: JSON.stringify({ receiptId }),
    })
    if (given === null) return false
    if (given.status === 204 || phraseOf(given) === 'give-back refused') failures--
    else isRefused(given)
    return false
  }

  function bearer(): { authorization: string } {
    return { authorization: `Bearer ${project.capability}` }
  }
}

function credentialOf(answer: Answer, preimage: string): string | null {
  const challenges = answer.lines('www-authenticate')
  const [challenge] = paymentChallenges(challenges)
  return challenge ? paymentAuthorization({ challenge, payload: { preimage } }) : null
}
