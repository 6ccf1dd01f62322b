/** A monitor that is open: its state as it changes, its pings, its settings, and what it shares. */
import type { PulseCapability, PulseStatus } from '../../client/index.ts'
import { createPulseClient } from '../../client/pulse.ts'
import { forget } from '../buying/capability.ts'
import type { Opened } from '../buying/opener.ts'
import { button, codeBox, confirmed, notice, toast, usage } from '../components.ts'
import { el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { count, moment, remaining, sentence } from '../format.ts'
import { clock } from '../service.ts'
import { type Connection, watchedService } from '../watched.ts'
import { settingsForm } from './settings.ts'
import { STATES } from './states.ts'
import { pingStrip } from './strip.ts'

/** The strip ends at now, which is drawn anew this often. */
const STRIP_MS = 15_000

export async function openMonitor(
  place: HTMLElement,
  capability: PulseCapability,
  { keeping, onGone, signal }: Opened,
): Promise<void> {
  const monitor = createPulseClient(watchedService(showConnection), capability)
  const pingUrl = `${location.origin}/p/${capability.publicId}`

  const connection = el('p', { class: 'state', role: 'status' }, 'Connecting…')
  const title = el('h2', { dir: 'auto' })
  const about = el('p', { class: 'quiet', dir: 'auto' })
  const state = el('p', { class: 'pulse-state' })
  const means = el('p', {})
  const countdowns = el('dl', { class: 'facts' })
  const strip = el('div', {})
  const counters = el('div', {})
  const expiry = el('p', { class: 'small quiet number' })
  const said = el('p', { class: 'visually-hidden', 'aria-live': 'polite' })
  const sharing = el('section', { class: 'card stack' })
  const problems = el('div', {})

  let status = await monitor.status()
  let stripAt = 0

  fill(
    place,
    said,
    el(
      'div',
      { class: 'stack' },
      keeping,
      problems,
      el(
        'section',
        { class: 'card stack', 'aria-label': 'State' },
        el('div', { class: 'row between' }, title, connection),
        about,
        state,
        means,
        countdowns,
        strip,
        counters,
        el(
          'div',
          { class: 'row between' },
          expiry,
          button('Destroy the monitor', destroy, { kind: 'small danger' }),
        ),
      ),
      el(
        'div',
        { class: 'halves' },
        lesson(pingUrl, capability),
        el('div', { class: 'stack' }, settingsForm(status, save), sharing),
      ),
    ),
  )
  show(status)
  const tick = setInterval(showTimes, 1_000)
  signal.addEventListener('abort', () => clearInterval(tick))
  await listen()

  async function listen(): Promise<void> {
    try {
      const news = monitor.stream({ signal })
      for (;;) {
        const next = await news.next()
        if (next.done) break
        if (next.value.event === 'ping') clock.passed(next.value.status.lastPingAt)
        const isOther = next.value.status.state !== status.state
        show(next.value.status)
        if (isOther) said.textContent = `The monitor is ${status.state}.`
      }
    } catch (error) {
      if (signal.aborted) return
      fill(problems, notice('bad', el('p', {}, sentence(error))))
    }
    if (signal.aborted) return
    connection.dataset.state = 'lost'
    connection.textContent = 'Closed'
  }

  function show(now: PulseStatus): void {
    status = now
    // What has changed has done so by the clock of the service.
    clock.passed(now.stateChangedAt)
    const { title: word, means: meaning } = STATES[now.state]
    title.textContent = now.name === '' ? 'Your monitor' : plainly(now.name)
    about.textContent = now.description
    about.hidden = now.description === ''
    state.dataset.state = now.state
    state.textContent = word
    means.textContent = `${meaning} So since ${moment(now.stateChangedAt)}.`
    fill(
      counters,
      usage('Pings', {
        used: now.acceptedHeartbeatCount,
        limit: now.heartbeatLimit,
        show: count,
      }),
    )
    stripAt = 0
    showTimes()
    showSharing()
  }

  function showTimes(): void {
    const now = clock.now()
    const until = (iso: string | null, over: string): string => {
      if (iso === null) return '–'
      const left = Date.parse(iso) - now
      return left > 0 ? `in ${remaining(left)}` : `${over} ${remaining(-left)}`
    }
    const since = status.lastPingAt === null ? null : now - Date.parse(status.lastPingAt)
    fill(
      countdowns,
      ...fact('Last ping', since === null ? 'none yet' : `${remaining(Math.max(since, 0))} ago`),
      ...fact('Next ping', until(status.nextExpectedAt, 'overdue by')),
      ...fact('Counts as late', until(status.lateAt, 'for')),
    )
    const left = Date.parse(status.expiresAt) - now
    expiry.textContent = `Ends ${moment(status.expiresAt)} (${left > 0 ? `in ${remaining(left)}` : 'over'}).`
    if (now - stripAt < STRIP_MS) return
    stripAt = now
    fill(strip, pingStrip(status, now))
  }

  function showSharing(): void {
    const isShared = status.publicStatusEnabled
    if (sharing.dataset.shared === String(isShared)) return
    sharing.dataset.shared = String(isShared)
    const statusUrl = `${location.origin}/status/${status.publicStatusId}`
    const badgeUrl = `${location.origin}/api/pulse/public/${status.publicStatusId}/badge.svg`
    const toggle = button(isShared ? 'Stop sharing' : 'Share the status', async () => {
      await attempt(() => save({ publicStatusEnabled: !isShared }))
    })
    fill(
      sharing,
      el('h2', {}, 'Sharing'),
      el(
        'p',
        {},
        isShared
          ? 'Anyone with this address sees the name, the description, the state and the last ping, and nothing else.'
          : 'Nobody but you sees this monitor. A shared one has a page and a badge with its state.',
      ),
      isShared && codeBox(statusUrl, { label: 'the address of the status', isWrapped: true }),
      isShared && el('p', {}, el('a', { href: statusUrl }, 'Open the status page')),
      isShared &&
        codeBox(`[![state](${badgeUrl})](${statusUrl})`, {
          label: 'the badge in Markdown',
          isWrapped: true,
        }),
      toggle,
    )
  }

  async function save(settings: Parameters<typeof monitor.update>[0]): Promise<void> {
    show(await monitor.update(settings))
  }

  async function destroy(): Promise<void> {
    const isWanted = await confirmed('Destroy this monitor?', {
      body: 'It takes no more pings, and its history, both of its tokens and what it shares go for good. Nothing is paid back.',
      action: 'Destroy it',
    })
    if (!isWanted) return
    await attempt(async () => {
      await monitor.destroy()
      forget(capability.publicId)
      toast('The monitor is destroyed')
      onGone()
    })
  }

  function showConnection(now: Connection): void {
    connection.dataset.state = now
    connection.textContent = now === 'live' ? 'Live' : 'Connection lost, trying again…'
  }
}

async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    toast(sentence(error))
  }
}

function fact(name: string, value: string): HTMLElement[] {
  return [el('dt', {}, name), el('dd', { class: 'number' }, value)]
}

/** How a job pings, with the token in a file: a command line is seen by others on a computer. */
function lesson(pingUrl: string, { pingToken }: PulseCapability): HTMLElement {
  const header = `header = "Authorization: Bearer ${pingToken}"`
  const curl = `curl -fsS -m 10 --retry 3 -X POST -K ~/.mayfly-ping ${pingUrl}`
  return el(
    'section',
    { class: 'card stack' },
    el('h2', {}, 'Ping it'),
    el('p', {}, 'Once, where the job runs: keep its token in a file that only you can read.'),
    codeBox(`(umask 077; echo '${header}' > ~/.mayfly-ping)`, {
      label: 'the file with the token',
      isWrapped: true,
    }),
    el('p', {}, 'Then at the end of each run:'),
    codeBox(curl, { label: 'the line of curl', isWrapped: true }),
    el('p', {}, 'In a crontab, when the job has done well:'),
    codeBox(`*/5 * * * * /path/to/job && ${curl}`, {
      label: 'the line of crontab',
      isWrapped: true,
    }),
    el(
      'p',
      { class: 'small quiet' },
      'The token can ping and nothing else. The service keeps nothing of what a ping carries.',
    ),
  )
}
