/** Shows an open monitor: its state, its pings, its settings, and what it shares. */
import type { PulseCapability, PulseSettings, PulseStatus } from '../../client/index.ts'
import { createPulseClient } from '../../client/pulse.ts'
import type { Opened } from '../buying/opener.ts'
import { announce, button, confirmed, notice, toast } from '../components.ts'
import { el, fill } from '../dom.ts'
import { disclosure } from '../late.ts'
import { attempt, createLive, destroyConfirmed, follow } from '../live.ts'
import { clock, everySecond } from '../service.ts'
import { createLesson } from './lesson.ts'
import { createScheduleForm } from './schedule-form.ts'
import { settingsForm } from './settings.ts'
import { createSharingView } from './sharing.ts'
import { createStateView, titleOf } from './state-view.ts'
import { STATES } from './states.ts'
import { createSwitchView } from './switch-view.ts'

export async function openMonitor(
  place: HTMLElement,
  capability: PulseCapability,
  { keeping, onGone, onReplaced, signal }: Opened,
): Promise<void> {
  const live = createLive(signal)
  const monitor = createPulseClient(live.http, capability)
  let status = await monitor.status()
  const state = createStateView(status)
  const sharing = createSharingView(save)
  const lesson = createLesson(capability, rotate)
  const schedule = createScheduleForm(status, {
    ...monitor,
    onChanged: async () => show(await monitor.status()),
  })
  const problems = el('div', {})
  const pinging = button('Ping now', ping)
  const tabTitle = document.title
  signal.addEventListener('abort', () => {
    document.title = tabTitle
  })

  function show(now: PulseStatus): void {
    status = now
    // The state changed by the service's clock, so the service's time is at least this.
    clock.passed(now.stateChangedAt)
    state.show(now)
    lesson.show(now)
    schedule.show(now)
    sharing.show(now)
    const isOver = now.state === 'exhausted' || now.state === 'expired'
    pinging.disabled = isOver
    pinging.classList.toggle('primary', now.state === 'waiting')
    // A person sees in the row of tabs what became of it.
    if (!signal.aborted) document.title = `${STATES[now.state].title} · ${titleOf(now)} · Mayfly`
  }

  function ping(): Promise<void> {
    return attempt(async () => {
      const { state: before } = status
      await monitor.ping()
      // The live status may come before the answer. What it announced says more, and stays.
      if (status.state === before) announce('Ping sent')
    })
  }

  async function rotate(): Promise<void> {
    const isWanted = await confirmed('Replace the ping token?', {
      body: 'The one that your jobs have pings no more, at once. They get an interval and a grace to take the new one.',
      action: 'Replace it',
    })
    if (!isWanted) return
    await attempt(async () => {
      const { token: pingToken } = await monitor.rotateToken('ping')
      onReplaced({ ...capability, pingToken })
      toast('The ping token is replaced. Give the new one to your jobs.')
    })
  }

  async function save(settings: PulseSettings): Promise<void> {
    show(await monitor.update(settings))
  }

  const extend = (): Promise<void> =>
    attempt(async () => {
      const { showExtension } = await import('../buying/extend.ts')
      const onExtended = async (): Promise<void> => show(await monitor.status())
      showExtension({ capability, planId: status.planId, onExtended, onReplaced })
    })

  const destroy = (): Promise<void> =>
    destroyConfirmed({
      noun: 'monitor',
      loss: 'It will accept no more pings. Its history, both tokens and the shared status are deleted for good.',
      publicId: capability.publicId,
      destroy: monitor.destroy,
      onGone,
    })

  fill(
    place,
    el(
      'div',
      { class: 'stack' },
      keeping,
      problems,
      el(
        'section',
        { class: 'card stack monitor', 'aria-label': 'State' },
        el('div', { class: 'row between' }, state.title, live.state),
        ...state.now,
        el(
          'div',
          { class: 'row' },
          pinging,
          el('p', { class: 'small quiet' }, 'To try it from here. It counts as one of your pings.'),
        ),
        ...state.past,
        el(
          'div',
          { class: 'row between' },
          state.expiry,
          el(
            'div',
            { class: 'row' },
            button('Extend the monitor', extend, { kind: 'small' }),
            button('Destroy the monitor', destroy, { kind: 'small danger' }),
          ),
        ),
      ),
      el(
        'div',
        { class: 'halves' },
        el(
          'div',
          { class: 'stack' },
          lesson.element,
          el(
            'section',
            { class: 'card', 'aria-label': 'History' },
            disclosure('History: its whole life, and the uptime', async () =>
              (await import('./history-view.ts')).historyView(monitor),
            ),
          ),
          createSwitchView(monitor),
          el(
            'section',
            { class: 'card', 'aria-label': 'Alerts' },
            disclosure('Alerts: who is told when it is late', async () =>
              (await import('../alerts-view.ts')).alertsView(monitor),
            ),
          ),
        ),
        el(
          'div',
          { class: 'stack' },
          settingsForm(status, save),
          schedule.element,
          sharing.element,
        ),
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
      if (hasChanged) announce(`The monitor is ${status.state}.`)
    },
    onFailed: (why) => fill(problems, notice('bad', el('p', {}, why))),
  })
}
