/** The page of a monitor: its state, its past, who is alerted, and how a job pings it. */
import './pulse.css'
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { PulseCapability, PulseSettings, PulseStatus } from '../../client/index.ts'
import { createPulseClient } from '../../client/pulse.ts'
import { Alerts, loadAlerts } from '../keys/alerts.tsx'
import { closedBy, KeyBar, mountOpener, openInPlaceOf } from '../keys/opener.tsx'
import { type Owned, OwnerMenu } from '../keys/owner.tsx'
import { STATES } from '../keys/things.tsx'
import { createConnection } from '../lib/connection.ts'
import { plainly } from '../lib/foreign.ts'
import { count, duration, endOf, when } from '../lib/format.ts'
import { keptOf, noteEnd } from '../lib/keys.ts'
import { service } from '../lib/service.ts'
import { Button } from '../ui/button.tsx'
import { announce, attempt, onConsent, toast } from '../ui/overlay.tsx'
import { Failure, LiveState, Meter, State, showTitle, Ticking } from '../ui/show.tsx'
import { History, loadPast, runWords } from './bars.tsx'
import { Settings, Setup, Sharing, Switch } from './settings.tsx'

/** Pings within this time load the history once. */
const PAST_DELAY_MS = 1_000

type Loaded = Awaited<ReturnType<typeof load>>

async function load(capability: PulseCapability) {
  const connection = createConnection()
  const monitor = createPulseClient(service, capability)
  const status = await monitor.status()
  noteEnd(capability.publicId, status.expiresAt)
  const [past, alerts] = await Promise.all([loadPast(monitor), loadAlerts(monitor)])
  return { capability, connection, monitor, status, past, alerts }
}

function Monitor({ loaded }: { loaded: Loaded }) {
  const { capability, monitor, connection } = loaded
  const { publicId } = capability
  const status = useSignal(loaded.status)
  const past = useSignal(loaded.past)
  const isEdited = useSignal(0)
  const stop = useMemo(() => new AbortController(), [])
  const loadingPast = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const { state, name } = status.value
  const shownName = plainly(name) || keptOf(publicId)?.name || 'Monitor'

  function show(next: PulseStatus): void {
    noteEnd(publicId, next.expiresAt)
    status.value = next
    loadingPast.current ??= setTimeout(() => {
      loadingPast.current = undefined
      loadPast(monitor).then(
        (next) => {
          past.value = next
        },
        () => undefined,
      )
    }, PAST_DELAY_MS)
  }

  async function save(settings: PulseSettings): Promise<void> {
    show(await monitor.update(settings))
  }

  /** One name on all pages: the monitor's own, which the key takes too. */
  async function renameIt(next: string): Promise<void> {
    await save({ name: next.trim() })
    isEdited.value++
  }

  function ping(): Promise<void> {
    return attempt(async () => {
      const before = status.value.state
      await monitor.ping()
      // The live status may come before the answer. What it announced says more, and stays.
      if (status.value.state === before) announce('Ping sent')
    })
  }

  function askToRotate(): Promise<void> {
    const body = 'Your jobs’ current token stops working immediately.'
    return onConsent('Replace the ping token?', { body, action: 'Replace it' }, async () => {
      const { token: pingToken } = await monitor.rotateToken('ping')
      toast('The ping token is replaced. Give the new one to your jobs.')
      const { planId } = status.value
      openInPlaceOf(publicId, { capability: { ...capability, pingToken }, planId })
    })
  }

  const isOver = state === 'exhausted' || state === 'expired'
  const owned: Owned = {
    isActive: !isOver,
    capability,
    client: monitor,
    status: status.value,
    onExtended: () => attempt(async () => show(await monitor.status())),
    loss: 'It stops accepting pings. History, tokens and public status are deleted for good.',
  }

  /** After its end, the service says why: an exhausted monitor shows so, and a destroyed one is closed. */
  async function follow(): Promise<void> {
    await connection.follow(
      (told) => monitor.stream(told),
      (news) => {
        const hasChanged = news.status.state !== status.value.state
        show(news.status)
        if (hasChanged) announce(`The monitor is ${news.status.state}.`)
      },
      stop.signal,
    )
    await monitor.status().then(show, (error) => stop.signal.aborted || closedBy(error))
  }

  useEffect(() => {
    void follow()
    return () => {
      stop.abort()
      showTitle('Monitors')
    }
  }, [])
  // A person sees in the row of tabs what became of it.
  useLayoutEffect(() => showTitle(`${STATES[state].text} · ${shownName}`), [state, shownName])

  return (
    <div class="stack" data-stale={connection.state.value === 'lost' ? '' : undefined}>
      <KeyBar name={name} onRename={renameIt}>
        {!isOver && <LiveState connection={connection} />}
        <OwnerMenu owned={owned} />
      </KeyBar>
      {connection.error.value !== null && (
        <Failure error={connection.error.value} onAgain={follow} />
      )}
      <div class="monitor">
        <StateCard status={status.value} isOver={isOver} onPing={ping} />
        <Alerts
          alerts={monitor}
          initial={loaded.alerts}
          event="when the monitor is late"
          hasEnded={isOver}
        />
      </div>
      <History past={past.value} status={status.value} monitor={monitor} />
      {!isOver && <Setup capability={capability} status={status.value} onRotate={askToRotate} />}
      {state !== 'expired' && (
        <div class="halves">
          <Settings key={isEdited.value} status={status.value} monitor={monitor} onStatus={show} />
          <div class="stack">
            <Sharing status={status.value} onSave={save} />
            {!isOver && <Switch status={status.value} monitor={monitor} />}
          </div>
        </div>
      )}
    </div>
  )
}

function StateCard({
  status,
  isOver,
  onPing,
}: {
  status: PulseStatus
  isOver: boolean
  onPing: () => Promise<void>
}) {
  const { state, description, expiresAt, acceptedHeartbeatCount, heartbeatLimit } = status
  return (
    <section class="card stack" aria-label="State">
      <div class="row between">
        <p class="monitor-state">
          <State kind={STATES[state].kind}>{STATES[state].text}</State>
        </p>
        {isOver ? (
          <Button weight="primary" href="/buy#pulse">
            Buy another
          </Button>
        ) : (
          <Button weight={state === 'waiting' ? 'primary' : 'secondary'} onClick={onPing}>
            Ping now
          </Button>
        )}
      </div>
      <p>
        {meaningOf(status)} <span class="quiet">{`Since ${when(status.stateChangedAt)}.`}</span>
      </p>
      {description !== '' && (
        <p class="quiet" dir="auto">
          {plainly(description)}
        </p>
      )}
      <dl class="facts number">
        {factsOf(status).map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Ticking text={text} />
            </dd>
          </div>
        ))}
      </dl>
      <Meter label="Pings" used={acceptedHeartbeatCount} limit={heartbeatLimit} show={count} />
      <p class="small quiet">
        <Ticking text={(now) => endOf(expiresAt, now)} />
      </p>
    </section>
  )
}

/** What the state means, with its actual cause. */
function meaningOf({ state, failure }: PulseStatus): string {
  if (state !== 'late') return STATES[state].means
  if (failure === null) return 'No ping came in time.'
  const code = failure.exitCode === null ? '' : ` with exit code ${failure.exitCode}`
  return `The last run failed${code}.`
}

type Fact = [name: string, text: (now: number) => string]

function factsOf(status: PulseStatus): Fact[] {
  const { state, lastPingAt, nextExpectedAt, lateAt, lastRun, openRuns, failure } = status
  const facts: (Fact | null)[] = [
    [
      'Last ping',
      (now) => (lastPingAt === null ? 'none yet' : `${duration(now - Date.parse(lastPingAt))} ago`),
    ],
    nextExpectedAt === null || state !== 'operational'
      ? null
      : ['Next ping', (now) => until(nextExpectedAt, now)],
    lateAt === null || state !== 'operational'
      ? null
      : ['Late without one', (now) => until(lateAt, now)],
    state === 'late'
      ? ['Late for', (now) => duration(now - Date.parse(failure?.since ?? status.stateChangedAt))]
      : null,
    lastRun === null ? null : ['Last run', () => runWords(lastRun)],
    openRuns.length === 0 ? null : ['Now', () => `${count(openRuns.length)} running`],
  ]
  return facts.filter((fact) => fact !== null)
}

function until(iso: string, now: number): string {
  const left = Date.parse(iso) - now
  // Rounded up, so that it is not yet 0 s while there is time left.
  return left > 0 ? `in ${duration(left + 999)}` : `overdue by ${duration(-left)}`
}

mountOpener({
  product: 'pulse',
  title: 'Monitors',
  load,
  children: (loaded) => <Monitor loaded={loaded} />,
})
