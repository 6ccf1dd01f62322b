/** The page with the public status of a monitor. */
import './pulse.css'
import { signal } from '@preact/signals'
import { useEffect, useLayoutEffect } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import type { PublicPulseStatus } from '../../client/index.ts'
import { pulsePublicStatus } from '../../client/pulse.ts'
import { STATES } from '../keys/things.tsx'
import { plainly } from '../lib/foreign.ts'
import { duration, when } from '../lib/format.ts'
import { clock, service } from '../lib/service.ts'
import { mount } from '../ui/overlay.tsx'
import { Notice, State, Ticking } from '../ui/show.tsx'

/** Often enough for a person who watches. The service would accept one request per second. */
const LOOK_AGAIN_MS = 15_000
/** A service that takes longer to answer is one that cannot be reached. */
const PATIENCE_MS = 10_000

const publicStatusId = location.pathname.split('/').pop() ?? ''
const status = signal<PublicPulseStatus | null>(null)
const failure = signal<'gone' | 'no answer' | null>(null)
const seenAt = signal('')

async function look(): Promise<void> {
  try {
    const next = await pulsePublicStatus(service, publicStatusId, { timeoutMs: PATIENCE_MS })
    seenAt.value = when(new Date(clock.now()).toISOString())
    failure.value = null
    status.value = next
  } catch (error) {
    const isGone = error instanceof MayflyError && error.status === 404
    failure.value = isGone ? 'gone' : 'no answer'
  }
}

function Page() {
  useEffect(() => {
    void look()
    // In a tab in the background, too: its title tells the state.
    const timer = setInterval(look, LOOK_AGAIN_MS)
    const seen = (): void => void (document.hidden || look())
    document.addEventListener('visibilitychange', seen)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', seen)
    }
  }, [])
  const shown = status.value
  const isStale = failure.value !== null
  const name = shown === null ? '' : plainly(shown.name) || 'Status'
  const title = shown === null ? 'Status' : `${STATES[shown.state].text} · ${name}`
  useLayoutEffect(() => {
    if (failure.value === 'gone') document.title = 'Nothing is shared here · Mayfly'
    else document.title = isStale && shown ? `No connection · ${title}` : title
  })
  if (failure.value === 'gone') {
    return (
      <div class="card stack">
        <h1>Nothing is shared here</h1>
        <p>The owner stopped sharing, the monitor has ended, or the address is incomplete.</p>
      </div>
    )
  }
  if (shown === null) {
    if (failure.value !== null) {
      return (
        <div class="card stack">
          <h1>Status</h1>
          <Notice kind="bad">The status cannot be loaded. Trying again…</Notice>
        </div>
      )
    }
    return (
      <>
        <h1 class="visually-hidden">Status</h1>
        <div class="skeleton status-skeleton" aria-hidden="true" />
      </>
    )
  }
  const { state, description, lastPingAt } = shown
  return (
    <div class="stack tight" data-stale={isStale ? '' : undefined}>
      <div class="card stack">
        <h1 dir="auto">{name}</h1>
        {description !== '' && (
          <p class="quiet" dir="auto">
            {plainly(description)}
          </p>
        )}
        <div class="stack tight" aria-live="polite">
          <p class="monitor-state">
            <State kind={STATES[state].kind}>{STATES[state].text}</State>
          </p>
          <p>{STATES[state].means}</p>
        </div>
        <p class="small quiet number">
          <Ticking
            text={(at) =>
              lastPingAt === null
                ? 'No pings yet.'
                : `Last ping ${duration(at - Date.parse(lastPingAt))} ago, at ${when(lastPingAt)}.`
            }
          />
        </p>
      </div>
      <p class="small quiet number" id="age">
        {isStale
          ? `No connection since ${seenAt.value}. This is the last known state. Trying again…`
          : `As of ${seenAt.value}.`}
      </p>
    </div>
  )
}

mount(<Page />)
