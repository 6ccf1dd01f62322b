/** Says how to send a request again. The page itself connects to nobody but its own service. */
import type { CatchEvent } from '../../client/index.ts'
import { codeBox } from '../components.ts'
import { el } from '../dom.ts'

export function replayHint({ sequence }: CatchEvent): HTMLElement {
  const command = `mayfly catch replay <name> ${sequence} --to http://localhost:3000/hook`
  return el(
    'details',
    { class: 'card' },
    el('summary', {}, 'Send it again, to your own server'),
    el(
      'div',
      { class: 'stack' },
      el(
        'p',
        { class: 'small quiet' },
        'This page only talks to this service. From a terminal, where <name> is the name you saved the inbox under:',
      ),
      codeBox(command, { label: 'the command that replays the request', isWrapped: true }),
    ),
  )
}
