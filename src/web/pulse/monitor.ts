/** Shows an open monitor: its state, its pings, its settings, and what it shares. */
import type { PulseCapability, PulseSettings, PulseStatus } from '../../client/index.ts'
import { createPulseClient } from '../../client/pulse.ts'
import type { Opened } from '../buying/opener.ts'
import { button, codeBox, notice } from '../components.ts'
import { el, fill } from '../dom.ts'
import { createLive, destroyConfirmed, follow } from '../live.ts'
import { clock, everySecond } from '../service.ts'
import { settingsForm } from './settings.ts'
import { createSharingView } from './sharing.ts'
import { createStateView } from './state-view.ts'

export async function openMonitor(
  place: HTMLElement,
  capability: PulseCapability,
  { keeping, onGone, signal }: Opened,
): Promise<void> {
  const live = createLive()
  const monitor = createPulseClient(live.http, capability)
  let status = await monitor.status()
  const state = createStateView(status)
  const sharing = createSharingView(save)
  const announcement = el('p', { class: 'visually-hidden', 'aria-live': 'polite' })
  const problems = el('div', {})

  function show(now: PulseStatus): void {
    status = now
    // The state changed by the service's clock, so the service's time is at least this.
    clock.passed(now.stateChangedAt)
    state.show(now)
    sharing.show(now)
  }

  async function save(settings: PulseSettings): Promise<void> {
    show(await monitor.update(settings))
  }

  const destroy = (): Promise<void> =>
    destroyConfirmed({
      noun: 'monitor',
      loss: 'It takes no more pings, and its history, both of its tokens and what it shares go for good.',
      publicId: capability.publicId,
      destroy: monitor.destroy,
      onGone,
    })

  fill(
    place,
    announcement,
    el(
      'div',
      { class: 'stack' },
      keeping,
      problems,
      el(
        'section',
        { class: 'card stack', 'aria-label': 'State' },
        el('div', { class: 'row between' }, state.title, live.state),
        ...state.parts,
        el(
          'div',
          { class: 'row between' },
          state.expiry,
          button('Destroy the monitor', destroy, { kind: 'small danger' }),
        ),
      ),
      el(
        'div',
        { class: 'halves' },
        lesson(`${location.origin}/p/${capability.publicId}`, capability),
        el('div', { class: 'stack' }, settingsForm(status, save), sharing.element),
      ),
    ),
  )
  show(status)
  everySecond(signal, state.showTimes)
  await follow(live, monitor.stream({ signal }), {
    signal,
    onItem(news) {
      if (news.event === 'ping') clock.passed(news.status.lastPingAt)
      const hasChanged = news.status.state !== status.state
      show(news.status)
      if (hasChanged) announcement.textContent = `The monitor is ${status.state}.`
    },
    onFailed: (why) => fill(problems, notice('bad', el('p', {}, why))),
  })
}

/** How a job pings. The token is in a file, because other users of a computer can see command lines. */
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
