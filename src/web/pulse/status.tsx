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
import { clock, isTroubled, type Reach, secondsUntil, watchfulService } from '../lib/service.ts'
import { mount } from '../ui/overlay.tsx'
import { State, Ticking, Trouble, Working } from '../ui/show.tsx'

/** Often enough for a person who watches. The service would accept one request per second. */
const LOOK_AGAIN_MS = 15_000
/** A service that takes longer to answer is one that cannot be reached. */
const PATIENCE_MS = 10_000

const publicStatusId = location.pathname.split('/').pop() ?? ''
const status = signal<PublicPulseStatus | null>(null)
const isGone = signal(false)
const seenAt = signal('')
const reach = signal<Reach>({ status: 200, againAt: 0 })
const service = watchfulService((next) => {
  reach.value = next
})

async function look(): Promise<void> {
  if (secondsUntil(reach.peek().againAt) > 0) return
  try {
    const next = await pulsePublicStatus(service, publicStatusId, { timeoutMs: PATIENCE_MS })
    seenAt.value = when(new Date(clock.now()).toISOString())
    isGone.value = false
    status.value = next
  } catch (error) {
    isGone.value = error instanceof MayflyError && error.status === 404
    // Something else answered, or nothing in time.
    if (!isTroubled(reach.peek())) reach.value = { status: 0, againAt: 0 }
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
  const isStale = isTroubled(reach.value)
  const name = shown === null ? '' : plainly(shown.name) || 'Status'
  const title = shown === null ? 'Status' : `${STATES[shown.state].text} · ${name}`
  useLayoutEffect(() => {
    if (isGone.value) document.title = 'Nothing is shared here · Mayfly'
    else document.title = isStale && shown ? `No connection · ${title}` : title
  })
  if (isGone.value) {
    return (
      <div class="card stack">
        <h1>Nothing is shared here</h1>
        <p>The owner stopped sharing, the monitor has ended, or the address is incomplete.</p>
      </div>
    )
  }
  if (shown === null) {
    return (
      <div class="stack">
        <h1 class={isStale ? '' : 'visually-hidden'}>Status</h1>
        {isStale ? (
          <Working>
            <Trouble reach={reach.value} />
          </Working>
        ) : (
          <div class="skeleton status-skeleton" aria-hidden="true" />
        )}
      </div>
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
        {isStale ? (
          <>
            <Trouble reach={reach.value} /> This is the last known state, as of {seenAt.value}.
          </>
        ) : (
          `As of ${seenAt.value}.`
        )}
      </p>
    </div>
  )
}

mount(<Page />)
