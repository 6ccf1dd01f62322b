/** What owners and strangers do with what was bought. */
import { type Bought, buy, FLOWS } from './buyer.ts'
import { destroyStory, extendStory } from './extending.ts'
import type { Run } from './run-context.ts'
import type { Ask } from './world/service.ts'

/** Buys an inbox and sends webhooks to it. Senders do not repeat what was lost. */
export async function inboxStory(run: Run, who: string): Promise<void> {
  const { random, sleep } = run.world.scheduler
  const inbox = await buy(run, who, { order: { product: 'catch' }, flow: random.pick(FLOWS) })
  if (!inbox) return
  if (random.chance(0.15)) return destroyStory(run, who, inbox)
  const books = { accepted: new Set<string>(), sent: new Set<string>() }
  run.ledger.stored.set(inbox.publicId, books)
  const extending = extendStory(run, who, inbox)
  const senders = Array.from({ length: random.int(1, 4) }, async (_, sender) => {
    for (let i = 0; i < random.int(2, 8); i++) {
      await sleep(random.next() * 1_500)
      const body = `${who} ${sender} ${i}`
      books.sent.add(body)
      const answer = await run.ask(`${who} webhook`, {
        method: 'POST',
        target: `/c/${inbox.publicId}/hook?n=${i}`,
        headers: { 'content-type': 'text/plain' },
        body,
      })
      if (answer?.status === 204) books.accepted.add(body)
      else expectLater(run, inbox, { what: `${who} webhook`, answer })
      if (run.ledger.gone.has(inbox.publicId)) return
    }
  })
  await Promise.all([...senders, extending])
}

const READS = 3

/** Buys a secret, and reads it. One read stays, so that its row is there for the books. */
export async function secretStory(run: Run, who: string): Promise<void> {
  const { random, sleep } = run.world.scheduler
  const body = random.bytes(random.int(64, 900))
  const flow = random.pick(FLOWS.filter((each) => !each.startsWith('one-url')))
  const secret = await buy(run, who, { order: secretOrder(body), flow })
  if (!secret) return
  const reads = { sold: READS, asked: 0, answered: 0 }
  run.ledger.reads.set(secret.publicId, reads)
  for (let i = 0; i < READS - 1; i++) {
    await sleep(random.next() * 2_000)
    reads.asked++
    const answer = await readSecret(run, who, secret)
    if (answer?.status === 200) {
      reads.answered++
      if (!answer.body.equals(Buffer.from(body)))
        run.ledger.break('reads are counted', `${who} has other bytes`)
    } else expectLater(run, secret, { what: `${who} read`, answer })
    if (run.ledger.gone.has(secret.publicId)) return
  }
}

export const secretOrder = (body: Uint8Array, headers: Record<string, string> = {}) => ({
  product: 'whisper' as const,
  body,
  headers: {
    'content-type': 'application/octet-stream',
    'x-whisper-plan': 'spark',
    'x-whisper-read-limit': String(READS),
    ...headers,
  },
})

const readSecret = (run: Run, who: string, secret: Bought) =>
  run.ask(`${who} read`, {
    target: `/w/${secret.publicId}`,
    headers: { authorization: `Bearer ${secret.resource.readToken}` },
  })

/** A refusal that passes: the answer was lost, or the service was away. */
function expectLater(
  run: Run,
  { publicId }: Bought,
  { what, answer }: { what: string; answer: Awaited<ReturnType<Run['ask']>> },
): void {
  if (run.ledger.gone.has(publicId)) return
  if (answer === null || answer.status === 429 || answer.status === 503) return
  if (answer.status === 500 && run.world.disk.failing > 0) return
  run.ledger.break('answers make sense', `${what}: ${answer.status} ${answer.text}`)
}

const INTERVAL_S = 60
const GRACE_S = 60
/** Well within the interval. */
const PING_EVERY_MS = 40_000
const RETRY_MS = 1_500
/** Twice as long each time, up to four times: much less than the grace. */
const LONGEST_SILENCE = 2
/** How often an owner looks whether a silence was noticed. */
export const LOOK_MS = 30_000
/** Interval and grace, the same again after the last blind window, the wait of a switch, and the longest hold. */
export const OPENS_WITHIN_MS = 2 * (INTERVAL_S + GRACE_S) * 1_000 + 1_500_000

/**
 * Buys a monitor, and pings it in time for as long as the run goes on: each ping is repeated until it is
 * answered. A secret may be bound to its silence: it stays shut while the job pings, and opens when the job dies.
 */
export async function monitorStory(run: Run, who: string, isBound: boolean): Promise<void> {
  const { world, ledger } = run
  const { random, sleep } = world.scheduler
  const order = {
    product: 'pulse' as const,
    body: JSON.stringify({ planId: isBound ? 'standard' : 'spark' }),
  }
  const flow = isBound ? 'native' : random.pick(FLOWS)
  const monitor = await buy(run, who, { order, flow, isPatient: isBound })
  if (!monitor) return
  const { set, ping } = pinged(run, who, monitor)
  await set()
  await ping()
  const secret = isBound ? await pingWhile(bindSecret(run, who, monitor)) : null
  const extending = isBound ? Promise.resolve() : extendStory(run, who, monitor)
  // The first ping after the purchase arms it.
  if (secret) await ping()
  const watching = secret ? watchSecret(secret) : Promise.resolve()
  while (run.isStormy() && !isGone()) {
    await sleep(PING_EVERY_MS * (0.6 + 0.4 * random.next()))
    await lookAtStatus()
    await ping()
  }
  await Promise.all([watching, extending])
  if (!secret || isGone()) return
  // Silence is measured by the clock: the last ping comes when that is right.
  while (!run.isCalm()) await sleep(RETRY_MS)
  // A restored backup may have other settings.
  if (ledger.restores > 0) await set()
  await ping()
  await waitForOpening(secret)

  function isGone(): boolean {
    return ledger.gone.has(monitor?.publicId ?? '')
  }

  async function lookAtStatus(): Promise<void> {
    const status = await owner(run, monitor as Bought, {})
    if (status?.status !== 200) return
    const { state } = JSON.parse(status.text) as { state: string }
    if (state === 'late') ledger.break('late only by its own fault', `${who} ${monitor?.publicId}`)
  }

  /** A switch is sold for a monitor that is pinged in time. */
  async function pingWhile<T>(work: Promise<T>): Promise<T> {
    let isDone = false
    const done = work.finally(() => {
      isDone = true
    })
    for (;;) {
      await Promise.race([done, sleep(PING_EVERY_MS)])
      if (isDone || isGone()) return done
      await ping()
    }
  }

  async function watchSecret(bound: Bought): Promise<void> {
    while (run.isStormy() && !ledger.gone.has(bound.publicId)) {
      const answer = await readSecret(run, who, bound)
      if (answer?.status === 200)
        ledger.break('a switch opens by silence alone', `${who} ${bound.publicId}`)
      else if (answer?.status !== 425) {
        expectLater(run, bound, { what: `${who} read of a switch`, answer })
      }
      await sleep(random.next() * 20_000)
    }
  }

  async function waitForOpening(bound: Bought): Promise<void> {
    for (let waited = 0; waited < OPENS_WITHIN_MS; waited += LOOK_MS) {
      await sleep(LOOK_MS)
      const answer = await readSecret(run, who, bound)
      if (answer?.status === 200 || ledger.gone.has(bound.publicId)) return
      if (answer?.status !== 425) {
        expectLater(run, bound, { what: `${who} read of a switch`, answer })
      }
    }
    ledger.break('a switch opens by silence', `${who} ${bound.publicId}`)
  }
}

/** Its times, which are set, and its pings, which are counted: each is repeated until it is answered. */
export function pinged(run: Run, who: string, held: Bought) {
  const counted = { accepted: 0, sent: 0 }
  run.ledger.pinged.set(held.publicId, counted)
  const body = JSON.stringify({ expectedIntervalSeconds: INTERVAL_S, graceSeconds: GRACE_S })
  const patch = () => owner(run, held, { method: 'PATCH', body })
  return {
    counted,
    set: () => insist(run, patch, { status: 200, held }),
    async ping(path = ''): Promise<void> {
      const once = () => {
        counted.sent++
        return run.ask(`${who} ping`, {
          method: 'POST',
          target: `/p/${held.publicId}${path}`,
          headers: { authorization: `Bearer ${held.resource.pingToken}` },
        })
      }
      if (await insist(run, once, { status: 204, held })) counted.accepted++
    },
  }
}

async function bindSecret(run: Run, who: string, monitor: Bought): Promise<Bought | null> {
  const { random } = run.world.scheduler
  const made = await insist(run, () => owner(run, monitor, { method: 'POST', path: '/switch' }), {
    status: 200,
    held: monitor,
  })
  if (!made) return null
  const { switchId } = JSON.parse(made.text) as { switchId: string }
  return buy(run, `${who} secret`, {
    order: secretOrder(random.bytes(100), { 'x-whisper-reveal-when': switchId }),
    flow: random.pick(FLOWS.filter((each) => !each.startsWith('one-url'))),
    isPatient: true,
  })
}

export const owner = (
  run: Run,
  { product, publicId, resource }: Bought,
  {
    method = 'GET',
    path = '',
    body,
  }: { method?: NonNullable<Ask['method']>; path?: string; body?: string },
) =>
  run.ask('owner', {
    method,
    target: `/api/${product}/${publicId}${path}`,
    headers: {
      authorization: `Bearer ${resource.ownerToken}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
  })

/** Asks until this is the answer. Null if a restored backup does not know what it is asked of. */
export async function insist(
  run: Run,
  work: () => ReturnType<Run['ask']>,
  { status, held }: { status: number; held: Bought },
) {
  for (let silence = 0; ; silence = Math.min(silence + 1, LONGEST_SILENCE)) {
    const answer = await work()
    if (run.ledger.gone.has(held.publicId)) return null
    if (answer?.status === status) return answer
    if (answer && answer.status >= 400 && answer.status < 429) {
      throw new Error(`refused: ${answer.status} ${answer.text}`)
    }
    await run.world.scheduler.sleep(RETRY_MS * 2 ** silence)
  }
}
