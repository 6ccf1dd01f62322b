/** Makes, copies and retires the switch of a monitor, which binds whispers to its silence. */
import type { PulseClient } from '../../client/pulse.ts'
import { button, codeBox, confirmed, toast } from '../components.ts'
import { el, fill } from '../dom.ts'
import { attempt } from '../live.ts'

/** The service tells the id only to who asks to make it, and then the same one each time. */
export function createSwitchView({
  makeSwitch,
  retireSwitch,
}: Pick<PulseClient, 'makeSwitch' | 'retireSwitch'>): HTMLElement {
  const place = el('div', { class: 'stack' })
  const make = button('Make or show the switch id', () =>
    attempt(async () => showId((await makeSwitch()).switchId)),
  )

  function showId(switchId: string): void {
    fill(
      place,
      codeBox(switchId, { label: 'the switch id', isWrapped: true }),
      el('div', { class: 'row' }, button('Retire it', retire, { kind: 'small danger' })),
    )
    place.querySelector('button')?.focus()
  }

  async function retire(): Promise<void> {
    const isWanted = await confirmed('Retire the switch?', {
      body: 'Nothing more can be bound to it. What is bound stays bound.',
      action: 'Retire it',
    })
    if (!isWanted) return
    await attempt(async () => {
      await retireSwitch()
      toast('The switch is retired')
      fill(place, make)
      make.focus()
    })
  }

  fill(place, make)
  return el(
    'section',
    { class: 'card stack', 'aria-label': 'Dead man’s switch' },
    el('h2', {}, 'Dead man’s switch'),
    el(
      'p',
      {},
      'A ',
      el('a', { href: '/whisper' }, 'whisper'),
      ' that is bought with this monitor’s switch id stays shut while you ping, and opens for good when the pings stop.',
    ),
    place,
    el(
      'p',
      { class: 'small quiet' },
      'Ping first, then buy the whisper, then ping again: that ping arms it. The id lets others bind to this monitor, and no more.',
    ),
  )
}
