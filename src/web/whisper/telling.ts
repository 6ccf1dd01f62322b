/** The inputs of a draft that ask for a receipt, and for a switch that it opens by. */
import { isId } from '../../lib/ids.ts'
import { field } from '../components.ts'
import { el } from '../dom.ts'

export type Telling = {
  /** The capability has a receipt: chosen, or because a switch always comes with one. */
  receipt: boolean
  /** The id of the switch that opens the whisper, or null. */
  revealWhen: string | null
}

export function tellingInputs(onChange: () => void) {
  const wanted = el('input', { type: 'checkbox' })
  const given = el('input', {
    type: 'text',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    placeholder: 'pulse_switch_…',
  })
  /** What was chosen before a switch made a receipt of its own. */
  let isChosen = false
  const switchId = (): string => given.value.trim()
  wanted.addEventListener('change', () => {
    isChosen = wanted.checked
    onChange()
  })
  given.addEventListener('input', () => {
    const isBound = switchId() !== ''
    wanted.disabled = isBound
    wanted.checked = isBound || isChosen
    onChange()
  })
  const more = el(
    'details',
    {},
    el('summary', {}, 'More'),
    el(
      'div',
      { class: 'stack' },
      field('Open it when a monitor falls silent', given),
      el(
        'p',
        { class: 'small quiet' },
        'Nobody can read it until the pings of that monitor stop; its owner makes the switch id on ',
        el('a', { href: '/pulse', target: '_blank', rel: 'noopener' }, 'the page of the monitor'),
        '. It comes with a receipt.',
      ),
    ),
  )

  function problem(): { text: string; input: HTMLElement } | null {
    if (switchId() === '' || isId('pulse_switch', switchId())) return null
    more.open = true
    const text =
      'This is not the id of a switch. It begins with pulse_switch_ and has 22 letters and digits after that.'
    return { text, input: given }
  }

  return {
    elements: [
      el('label', { class: 'check' }, wanted, el('span', {}, 'Tell me when it is read')),
      more,
    ],
    problem,
    telling: (): Telling => ({
      receipt: wanted.checked,
      revealWhen: switchId() === '' ? null : switchId(),
    }),
    clear(): void {
      isChosen = false
      wanted.checked = false
      wanted.disabled = false
      given.value = ''
    },
  }
}
