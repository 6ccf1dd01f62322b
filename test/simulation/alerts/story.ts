/**
 * An owner who is told of a monitor. Its job pings in time, and some of its runs fail; in the end it falls silent and
 * comes back. What each destination was told is compared with the monitor's own history.
 */
import { buy, FLOWS } from '../buyer.ts'
import { insist, LOOK_MS, OPENS_WITHIN_MS, owner, pinged } from '../jobs.ts'
import type { Run } from '../run-context.ts'
import { openReceiver, type Receiver, type Told } from './receiver.ts'

/** Well within the interval. */
const PING_EVERY_MS = 30_000
const RETRY_MS = 1_500
/** Three failures end with a pause of half an hour, and a clock that jumped adds ten minutes. */
const TOLD_WITHIN_MS = 45 * 60_000
/** After as many, the next attempt comes after the run. */
const PATIENCE_ATTEMPTS = 4

type AlertsStatus = {
  destinations: { host: string; state: string }[]
  deliveries: { outcome: string | null; attempts: number }[]
}
type AlertsSet = { destinations: { host: string; state: string; secret: string | null }[] }
type History = { entries: Entry[] }
type Entry = { type: string; at: string; endedAt: string | null; cause: string | null }
/** A change of the monitor, and with which ping it came; late comes with none. */
type Change = { type: string; since: string; ping: number }
/** A destination that is set: what comes after so many pings may be told, and then what must be. */
type Destination = { receiver: Receiver; askedFrom: number; activeFrom: number }

export async function alertsStory(run: Run, who: string): Promise<void> {
  const { world, ledger } = run
  const { random, sleep, wasTakenBack } = world.scheduler
  const order = { product: 'pulse' as const, body: JSON.stringify({ planId: 'spark' }) }
  const monitor = await buy(run, who, { order, flow: random.pick(FLOWS) })
  if (!monitor) return
  const held = monitor
  const { counted, set: setTimes, ping } = pinged(run, who, held)
  await setTimes()
  await ping()
  const receivers = ['a', 'b']
    .slice(0, random.pick([1, 1, 2]))
    .map((name) => openReceiver(`${name}.${who}.example.com`, { mayEnd: name === 'b' }))
  const destinations: Destination[] = []
  let { restores } = ledger
  const owning = own()
  // It is awaited only once the storm is over.
  owning.catch(() => undefined)
  while (run.isStormy() && !isOver()) {
    await sleep(PING_EVERY_MS * (0.2 + 0.8 * random.next()))
    await ping(random.pick(['', '', '/fail', '/3']))
  }
  const pinging = keepPinging()
  for (const receiver of receivers) receiver.calm()
  while (!(run.isCalm() || isOver())) await sleep(RETRY_MS)
  await owning
  pinging.stop()
  await pinging.done
  if (isOver()) return
  refuseLateness()
  const isToFallSilent = random.chance(0.5)
  if (isToFallSilent) await fallSilent()
  const later = keepPinging()
  await waitUntilTold()
  later.stop()
  await later.done
  if (ledger.restores > 0 || isOver()) return
  await compareWithHistory()
  for (const { promise, what } of receivers.flatMap(({ faults }) => faults)) {
    ledger.break(promise, what)
  }

  function isOver(): boolean {
    return ledger.gone.has(held.publicId)
  }

  /** Nobody but this job may be late. */
  function keepPinging(): { stop(): void; done: Promise<void> } {
    let isStopped = false
    async function go(): Promise<void> {
      while (!isStopped && !isOver()) {
        await ping()
        for (let waited = 0; waited < PING_EVERY_MS && !isStopped; waited += LOOK_MS) {
          await sleep(LOOK_MS)
        }
      }
    }
    const done = go()
    done.catch(() => undefined)
    return {
      stop() {
        isStopped = true
      },
      done,
    }
  }

  /** Sets the destinations, sets them again from time to time, and takes some away. */
  async function own(): Promise<void> {
    let wanted = receivers
    await set(wanted)
    while (run.isStormy() && !isOver()) {
      await sleep(random.next() * 40_000)
      const draw = random.next()
      if (draw < 0.3) await set(wanted)
      else if (draw < 0.4) {
        const removed = wanted.slice(-1)
        wanted = wanted.slice(0, -1)
        if (wanted.length > 0) await set(wanted)
        else await forget()
        for (const receiver of removed) end(receiver)
      } else await lookAtAlerts()
      if (wanted.length === 0) return
    }
  }

  function end(receiver: Receiver): void {
    receiver.ends()
    const at = destinations.findIndex((each) => each.receiver === receiver)
    if (at >= 0) destinations.splice(at, 1)
  }

  /** Repeated until each destination has answered a test, or wants no more. */
  async function set(wanted: readonly Receiver[]): Promise<void> {
    const left = wanted.filter((receiver) => !receiver.isGone())
    const body = JSON.stringify({ destinations: left.map(({ url }) => ({ url })) })
    // Those that a restored backup does not know are new, and have other secrets.
    if (ledger.restores > restores) for (const receiver of wanted) receiver.forgetsSecret()
    restores = ledger.restores
    const askedFrom = counted.accepted
    const put = () => owner(run, held, { method: 'PUT', path: '/alerts', body })
    let answer = await insist(run, put, { status: 200, held })
    while (answer) {
      const { destinations: are } = JSON.parse(answer.text) as AlertsSet
      for (const { host, secret } of are) {
        if (secret) left.find((each) => each.host === host)?.learns(secret)
      }
      // A test that is repeated tells only of those that no test has reached: its first answer may be lost.
      const isUntested = (each: Receiver) =>
        are.some(({ host, state }) => host === each.host && state !== 'active')
      if (!left.some((each) => !each.isGone() && isUntested(each))) break
      await sleep(RETRY_MS)
      // A restored backup may know fewer.
      const isSet = left.every(
        (each) => each.isGone() || are.some(({ host }) => host === each.host),
      )
      if (!isSet) for (const receiver of left) receiver.forgetsSecret()
      answer = await insist(run, put, { status: 200, held })
    }
    if (!answer) return
    // Of the others, the service learns with its next message that they want no more.
    for (const receiver of wanted) if (!left.includes(receiver)) end(receiver)
    const pings = (await changesAndPings()).pings
    for (const receiver of left.filter((each) => !each.isGone())) {
      if (destinations.some((each) => each.receiver === receiver)) continue
      destinations.push({ receiver, askedFrom, activeFrom: pings })
    }
  }

  async function forget(): Promise<void> {
    const remove = () => owner(run, held, { method: 'DELETE', path: '/alerts' })
    await insist(run, remove, { status: 204, held })
  }

  async function lookAtAlerts(): Promise<AlertsStatus | null> {
    const answer = await owner(run, held, { path: '/alerts' })
    if (answer?.status !== 200) return null
    const status = JSON.parse(answer.text) as AlertsStatus
    for (const { host, state } of status.destinations) {
      const receiver = receivers.find((each) => each.host === host)
      if (receiver && state === 'gone') end(receiver)
    }
    return status
  }

  /** What the monitor's history has, the oldest first. */
  async function changesAndPings(): Promise<{ changes: Change[]; pings: number }> {
    const read = () => owner(run, held, { path: '/history?limit=200' })
    const answer = await insist(run, read, { status: 200, held })
    if (!answer) return { changes: [], pings: 0 }
    const { entries: shown } = JSON.parse(answer.text) as History
    const entries = shown.toReversed()
    const silences = entries.filter(({ type, cause }) => type === 'late' && cause === 'silence')
    const beats = entries.filter(({ type }) => type === 'ping' || type === 'failed')
    /**
     * The ping of the very time that ended the silence: pings that came after a clock was set back have earlier ones.
     * The clock of whoever took it may be behind that of who noticed the silence, which then has no length.
     */
    const endOf = ({ endedAt }: Entry) =>
      beats.findLast(({ at }) => at === endedAt) ??
      beats.findLast(({ at }) => endedAt !== null && at <= endedAt)
    const changes: Change[] = []
    let pings = 0
    let hasFailed = false
    for (const beat of beats) {
      const { type, at } = beat
      pings++
      const silence = silences.find((one) => endOf(one) === beat)
      if (silence) changes.push({ type: 'pulse.late', since: silence.at, ping: pings })
      if (type === 'failed' && !hasFailed) {
        changes.push({ type: 'pulse.failed', since: at, ping: pings })
      } else if (type === 'ping' && (hasFailed || silence)) {
        changes.push({ type: 'pulse.recovered', since: at, ping: pings })
      }
      hasFailed = type === 'failed'
    }
    return { changes, pings }
  }

  function refuseLateness(): void {
    for (const { told } of receivers) {
      const late = told.find(({ type }) => type === 'pulse.late')
      if (late && ledger.restores === 0) ledger.break('late only by its own fault', late.body)
    }
  }

  async function fallSilent(): Promise<void> {
    for (let waited = 0; waited < OPENS_WITHIN_MS && !isOver(); waited += LOOK_MS) {
      await sleep(LOOK_MS)
      const status = await owner(run, held, {})
      if (status?.status !== 200) continue
      if ((JSON.parse(status.text) as { state: string }).state === 'late') return
    }
  }

  async function waitUntilTold(): Promise<void> {
    let missing: string[] = []
    for (let waited = 0; waited < TOLD_WITHIN_MS && !isOver(); waited += LOOK_MS) {
      await sleep(LOOK_MS)
      const status = await lookAtAlerts()
      if (!status) continue
      missing = await untold()
      const isPatient = status.deliveries.some(
        ({ outcome, attempts }) => outcome !== '2xx' && attempts >= PATIENCE_ATTEMPTS,
      )
      if (missing.length === 0 || isPatient || ledger.restores > 0) return
    }
    for (const what of missing) ledger.break('an alert is delivered', what)
  }

  /** What the destinations must have been told, and were not. */
  async function untold(): Promise<string[]> {
    const { changes } = await changesAndPings()
    const active = destinations.filter(({ receiver }) => !receiver.isGone())
    return active.flatMap(({ receiver, askedFrom, activeFrom }) => {
      const due = changes.filter(({ ping: number }) => number > activeFrom)
      const isFirst = due.length === changes.filter(({ ping: number }) => number > askedFrom).length
      // What happens within a minute of another change may be told by the last state alone.
      const must = new Set([...due.slice(0, isFirst ? 1 : 0), ...due.slice(-1)])
      return [...must]
        .filter((change) => !receiver.told.some((one) => one.isTaken && isOfNow(change, one)))
        .map(({ type, since }) => `${receiver.host} was not told ${type} of ${since}`)
    })
  }

  /** The service has set back the times of a clock that was ahead, after it has told of them. */
  function isOfNow(change: Change, told: Told): boolean {
    const isOfThen = told.type === change.type && wasTakenBack(Date.parse(told.since))
    return isOfThen || isOf(change)(told)
  }

  /** Whether what each receiver was told has happened, in this order. */
  async function compareWithHistory(): Promise<void> {
    const toldTo = receivers.map(({ host, told }) => ({ host, told: [...told] }))
    const { changes } = await changesAndPings()
    // What is over before it is sent is told by the last state alone.
    const silences = changes.filter(({ type }) => type === 'pulse.late')
    if (silences.length > Number(isToFallSilent)) {
      ledger.break('late only by its own fault', silences.map(({ since }) => since).join(', '))
    }
    for (const { host, told: all } of toldTo) {
      const told = all.filter(({ since }) => !wasTakenBack(Date.parse(since)))
      const places = told.map((one) => changes.findIndex((change) => isOf(change)(one)))
      const invented = told[places.indexOf(-1)]
      if (invented) ledger.break('no alert is invented', `${host} was told ${invented.body}`)
      if (places.some((place, i) => place < Math.max(...places.slice(0, i)))) {
        ledger.break('alerts come in order', `${host} was told ${places}`)
      }
    }
  }
}

const isOf =
  ({ type, since }: Change) =>
  (told: { type: string; since: string }): boolean =>
    told.type === type && told.since === since
