/** The page with the public status of a monitor. */
import { MayflyError } from '../../client/errors.ts'
import type { PublicPulseStatus } from '../../client/index.ts'
import { pulsePublicStatus } from '../../client/pulse.ts'
import { notice } from '../components.ts'
import { byId, el, fill, setText } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { duration, moment, sentence } from '../format.ts'
import { clock, service } from '../service.ts'
import { STATES } from './states.ts'

/** Often enough for a person who watches. The service would accept one request per second. */
const LOOK_AGAIN_MS = 15_000
/** A service that takes longer to answer is one that cannot be reached. */
const PATIENCE_MS = 10_000

const place = byId('status')
const age = document.createTextNode('')
const lastPing = document.createTextNode('')
const publicStatusId = location.pathname.split('/').pop() ?? ''
let shown = ''
let title = ''
let lastPingAt: string | null = null
let seenAt = ''
let hasFailed = false
/** When the first look began that has no answer yet, by this computer's clock, or null. */
let askedAt: number | null = null

byId('age').append(age)
await look()
// In a tab in the background, too: its title tells the state.
setInterval(look, LOOK_AGAIN_MS)
setInterval(showTimes, 1_000)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void look()
})

async function look(): Promise<void> {
  askedAt ??= Date.now()
  try {
    const status = await pulsePublicStatus(service, publicStatusId)
    clock.passed(status.lastPingAt)
    seenAt = moment(new Date(clock.now()).toISOString())
    hasFailed = false
    show(status)
  } catch (error) {
    const isGone = error instanceof MayflyError && error.status === 404
    hasFailed = !isGone
    if (isGone) showNothing()
    else if (shown === '') {
      fill(place, notice('bad', el('p', {}, `${sentence(error)} This page keeps trying.`)))
    }
  }
  askedAt = null
  showTimes()
}

function show(status: PublicPulseStatus): void {
  const { state } = status
  const [name, description] = [plainly(status.name), plainly(status.description)]
  lastPingAt = status.lastPingAt
  // A screen reader announces only changes, and what a person has selected stays selected.
  const next = JSON.stringify([state, name, description])
  if (shown === next) return
  shown = next
  title = `${STATES[state].title} · ${name === '' ? 'Status' : name}`
  fill(
    place,
    el(
      'div',
      { class: 'card stack status-card' },
      el('h1', { dir: 'auto' }, name === '' ? 'Status' : name),
      description !== '' && el('p', { class: 'quiet', dir: 'auto' }, description),
      el(
        'div',
        { class: 'stack', 'aria-live': 'polite' },
        el('p', { class: 'pulse-state', 'data-state': state }, STATES[state].title),
        el('p', {}, STATES[state].means),
      ),
      el('p', { class: 'small quiet number' }, lastPing),
    ),
  )
}

/** Shows how old everything is. Without news, the state is only the last known one, and looks like that. */
function showTimes(): void {
  if (shown === '') return
  const isStale = hasFailed || (askedAt !== null && Date.now() - askedAt > PATIENCE_MS)
  place.toggleAttribute('data-stale', isStale)
  document.title = isStale ? `No connection · ${title}` : title
  setText(
    age,
    isStale
      ? `No connection since ${seenAt}. This is the last known state. Trying again…`
      : `As of ${seenAt}.`,
  )
  const ago = lastPingAt === null ? 0 : clock.now() - Date.parse(lastPingAt)
  setText(
    lastPing,
    lastPingAt === null
      ? 'No pings yet.'
      : `Last ping ${duration(ago)} ago, at ${moment(lastPingAt)}.`,
  )
}

function showNothing(): void {
  shown = ''
  setText(age, '')
  place.removeAttribute('data-stale')
  document.title = 'Nothing is shared here · Mayfly'
  fill(
    place,
    el(
      'div',
      { class: 'card stack status-card' },
      el('h1', {}, 'Nothing is shared here'),
      el(
        'p',
        {},
        'The owner stopped sharing this status, the monitor has ended, or the address is incomplete.',
      ),
    ),
  )
}
