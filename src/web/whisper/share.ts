/**
 * Shows the share code after the purchase, with the ways to pass it on. It is shown once. The code is
 * never part of the reading page's address, because a URL must not contain a secret.
 */
import type { SharedWhisper } from '../../client/whisper.ts'
import { downloadCapability } from '../buying/bought.ts'
import type { Saving } from '../buying/checkout.ts'
import { button, codeBox, copyButton } from '../components.ts'
import { type Child, el } from '../dom.ts'
import { count, moment } from '../format.ts'

export type Sharing = Saving & {
  readLimit: number
  revealAt: Date | null
  hasPassword: boolean
}

export function shareView(whisper: SharedWhisper, sharing: Sharing): Child[] {
  const { code, expiresAt } = whisper
  const { revealAt, hasPassword, onSaved, state } = sharing
  return [
    el('h2', { tabindex: '-1', id: 'step' }, 'Your whisper is ready'),
    el(
      'p',
      {},
      `Whoever has this code${hasPassword ? ' and the password' : ''} can read it: ${readsOf(sharing)}`,
      revealAt === null ? ', until ' : `, from ${moment(revealAt.toISOString())} to `,
      el('time', { datetime: expiresAt }, moment(expiresAt)),
      '. The code is shown this once, and nobody can recover it.',
    ),
    el(
      'pre',
      { class: 'content token', tabindex: '0', role: 'group', 'aria-label': 'The share code' },
      el('code', {}, code),
    ),
    el(
      'div',
      { class: 'row even' },
      copyButton(() => code, {
        label: 'Copy the code',
        kind: 'primary',
        onCopied: () => onSaved('The code is copied.'),
      }),
      copyButton(() => instructions(whisper, sharing), {
        label: 'Copy with instructions',
        onCopied: () => onSaved('The code is copied, with a few lines for its reader.'),
      }),
      button('Download', () => {
        downloadCapability({ capability: whisper })
        onSaved('Downloaded.')
      }),
    ),
    state,
    el('p', { class: 'small quiet' }, 'Readers paste the code on this page:'),
    codeBox(`${location.origin}/read`, { label: 'The address of the reading page' }),
    el(
      'p',
      { class: 'small quiet' },
      'There is no link with the code in it: browsers keep addresses in their history, and chat programs open them.',
    ),
    el('p', {}, el('a', { href: '/whisper' }, 'Write another')),
  ]
}

function readsOf({ readLimit }: Sharing): string {
  return readLimit === 1 ? 'once' : `${count(readLimit)} times in all`
}

function instructions({ code, expiresAt }: SharedWhisper, sharing: Sharing): string {
  const { revealAt, hasPassword } = sharing
  const lines = [
    `There is a secret for you. Open ${location.origin}/read and paste this code:`,
    '',
    code,
    '',
    `It can be read ${readsOf(sharing)}, until ${moment(expiresAt)}.`,
    ...(revealAt
      ? [`It opens on ${moment(revealAt.toISOString())}; asking before costs nothing.`]
      : []),
    ...(hasPassword ? ['It asks for a password, which you get another way.'] : []),
  ]
  return `${lines.join('\n')}\n`
}
