/** The share code of a whisper just bought: once, with the ways to hand it on. */
import type { SharedWhisper } from '../client/whisper.ts'
import { downloadCapability } from './bought.ts'
import type { Saving } from './checkout.ts'
import { button, copyButton } from './components.ts'
import { type Child, el } from './dom.ts'
import { count, moment } from './format.ts'

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
      copyButton(() => `${location.origin}/read#${code}`, {
        label: 'Copy a link',
        onCopied: () => onSaved('The link is copied. It opens the whisper like the code itself.'),
      }),
      button('Download', () => {
        downloadCapability(whisper)
        onSaved('Downloaded.')
      }),
    ),
    state,
    el(
      'p',
      { class: 'small quiet' },
      'A link has the code behind its #, which browsers do not send to a server. But links are kept in histories and looked at by chat programs: the code alone is safer.',
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
