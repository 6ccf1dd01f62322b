/** The page with the public status of a monitor. */
import { MayflyError } from '../../client/errors.ts'
import type { PublicPulseStatus } from '../../client/index.ts'
import { pulsePublicStatus } from '../../client/pulse.ts'
import { notice } from '../components.ts'
import { byId, el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { moment, sentence } from '../format.ts'
import { clock, service } from '../service.ts'
import { STATES } from './states.ts'

/** Often enough for a person who watches. The service would accept one request per second. */
const LOOK_AGAIN_MS = 15_000

const place = byId('status')
const age = byId('age')
const publicStatusId = location.pathname.split('/').pop() ?? ''
let shown = ''
let seenAt = ''

await look()
setInterval(() => {
  if (!document.hidden) void look()
}, LOOK_AGAIN_MS)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void look()
})

async function look(): Promise<void> {
  try {
    const status = await pulsePublicStatus(service, publicStatusId)
    clock.passed(status.lastPingAt)
    show(status)
    seenAt = moment(new Date(clock.now()).toISOString())
    age.textContent = `As of ${seenAt}.`
  } catch (error) {
    const isGone = error instanceof MayflyError && error.status === 404
    if (isGone) showNothing()
    else if (shown === '') {
      fill(place, notice('bad', el('p', {}, `${sentence(error)} This page asks again by itself.`)))
    } else age.textContent = `As of ${seenAt}. No answer since then; asking again.`
  }
}

function show(status: PublicPulseStatus): void {
  const { state, lastPingAt } = status
  const [name, description] = [plainly(status.name), plainly(status.description)]
  // A screen reader announces only changes.
  if (shown === JSON.stringify(status)) return
  shown = JSON.stringify(status)
  const { title, means } = STATES[state]
  document.title = `${title} · ${name === '' ? 'Status' : name}`
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
        el('p', { class: 'pulse-state', 'data-state': state }, title),
        el('p', {}, means),
      ),
      el(
        'p',
        { class: 'small quiet number' },
        lastPingAt === null ? 'No ping so far.' : 'Last ping ',
        lastPingAt !== null && el('time', { datetime: lastPingAt }, moment(lastPingAt)),
      ),
    ),
  )
}

function showNothing(): void {
  shown = ''
  age.textContent = ''
  document.title = 'Nothing is shared here · Mayfly'
  fill(
    place,
    el(
      'div',
      { class: 'card stack status-card' },
      el('h1', {}, 'Nothing is shared here'),
      el('p', {}, 'Its owner stopped sharing, the monitor is over, or the address is not whole.'),
    ),
  )
}
