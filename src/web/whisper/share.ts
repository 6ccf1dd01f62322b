/**
 * Shows the share code after the purchase, with the ways to pass it on. It is shown once. The code is
 * never part of the reading page's address, because a URL must not contain a secret.
 */
import type { SharedWhisper } from '../../client/whisper.ts'
import { downloadCapability } from '../buying/capability.ts'
import type { Saving } from '../buying/checkout.ts'
import { qrCode } from '../buying/qr.ts'
import type { Terms } from '../buying/terms.ts'
import { button, codeBox, confirmed, copyButton } from '../components.ts'
import { type Child, el, fill } from '../dom.ts'
import { count, moment } from '../format.ts'
import { showLate } from '../late.ts'

export type Sharing = Saving & {
  terms: Terms
  readLimit: number
  revealAt: Date | null
  /** The switch that opens it, or null. */
  revealWhen: string | null
  hasPassword: boolean
  /** The password, or null if this page does not know it: it was typed before a reload. */
  password: string | null
  /** The password was made by the page, so nobody knows it by heart. */
  suggested: string | null
  onAnother: () => void
}

export function shareView(whisper: SharedWhisper, sharing: Sharing): Child[] {
  const { code, expiresAt } = whisper
  const { revealAt, hasPassword, suggested, isSaved, state, onAnother } = sharing
  const taken = {
    code: false,
    password: suggested === null,
    receipt: whisper.receiptToken === undefined,
  }

  /** The keys are wiped only when the user has all that the reader needs, and the receipt that was asked for. */
  function take(what: keyof typeof taken, how: string): void {
    taken[what] = true
    const left = (['code', 'password', 'receipt'] as const).find((each) => !taken[each])
    if (left === undefined) sharing.onSaved(how)
    else if (!isSaved()) {
      sharing.say(`${how} ${left === 'receipt' ? 'Keep' : 'Copy'} the ${left} too.`)
    }
  }

  /** Few whispers have a receipt, so its part is loaded for these alone. */
  async function receipt(): Promise<HTMLElement> {
    const { receiptPart } = await import('./receipt-part.ts')
    const part = receiptPart(whisper, {
      terms: sharing.terms,
      isCodeTaken: () => taken.code && taken.password,
      onKept: () => take('receipt', 'The receipt is kept in this browser.'),
      say: sharing.say,
    })
    return el('div', { class: 'stack' }, ...part)
  }

  async function writeAnother(): Promise<void> {
    const what = taken.code && taken.password ? 'receipt' : 'code'
    const question = { body: LOST[what], action: 'Lose it' }
    if (!isSaved() && !(await confirmed(`Leave without the ${what}?`, question))) return
    onAnother()
  }

  return [
    el('h2', { tabindex: '-1', id: 'step' }, 'Your whisper is ready'),
    el(
      'p',
      {},
      `Anyone with this code${hasPassword ? ' and the password' : ''} can read it ${readsOf(sharing)}`,
      opening(sharing),
      revealAt === null ? ', until ' : ' to ',
      el('time', { datetime: expiresAt }, moment(expiresAt)),
      '. Save it now. We cannot recover it.',
    ),
    state,
    el('h3', {}, 'The code'),
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
        onCopied: () => take('code', 'The code is copied.'),
      }),
      copyButton(() => instructions(whisper, sharing), {
        label: 'Copy with instructions',
        onCopied: () => take('code', 'The code is copied, with a few lines for its reader.'),
      }),
      button('Download', () => {
        downloadCapability({ capability: whisper, planId: sharing.terms.planId })
        taken.receipt = true
        take('code', 'The code is downloaded.')
      }),
    ),
    codeAsPicture(code),
    ...passwordPart(sharing, () => take('password', 'The password is copied.')),
    ...(whisper.receiptToken === undefined ? [] : [showLate(receipt)]),
    el('h3', {}, 'Where it is read'),
    codeBox(`${location.origin}/read`, { label: 'The address of the reading page' }),
    el(
      'p',
      { class: 'small quiet' },
      'The code is not part of the address: browsers keep addresses in their history, and chat programs open them.',
    ),
    el('div', { class: 'row' }, button('Write another', writeAnother)),
  ]
}

const LOST = {
  code: 'Nobody can recover it: without the code the whisper cannot be read.',
  receipt: 'Nobody can recover it: without the receipt you are not told when it is read.',
}

/** From when it can be read, as the rest of a sentence. */
function opening({ revealAt, revealWhen }: Sharing): string {
  const from = revealAt === null ? '' : `, from ${moment(revealAt.toISOString())}`
  return revealWhen === null ? from : ` after the monitor has fallen silent${from}`
}

/** The code as a QR code, drawn when it is opened: a camera nearby could read it. */
function codeAsPicture(code: string): HTMLElement {
  const place = el('div', {})
  return el(
    'details',
    {
      ontoggle: () => {
        if (place.childElementCount === 0) {
          fill(place, el('div', { class: 'qr' }, qrCode(code, 'QR code of the share code')))
        }
      },
    },
    el('summary', {}, 'Show the code as a QR code'),
    place,
  )
}

function passwordPart({ hasPassword, password }: Sharing, onCopied: () => void): Child[] {
  if (!hasPassword) return []
  const lead = 'Send it separately; both are needed to open it.'
  if (password === null) {
    return [el('h3', {}, 'The password'), el('p', {}, `The one that you typed. ${lead}`)]
  }
  return [
    el('h3', {}, 'The password'),
    el('p', {}, lead),
    el(
      'pre',
      { class: 'content token', tabindex: '0', role: 'group', 'aria-label': 'The password' },
      el('code', {}, password),
    ),
    el(
      'div',
      { class: 'row' },
      copyButton(() => password, { label: 'Copy the password', onCopied }),
    ),
  ]
}

function readsOf({ readLimit }: Pick<Sharing, 'readLimit'>): string {
  return readLimit === 1 ? 'once' : `${count(readLimit)} times in total`
}

function instructions({ code, expiresAt }: SharedWhisper, sharing: Sharing): string {
  const { revealAt, revealWhen, hasPassword } = sharing
  const lines = [
    `There is a secret for you. Open ${location.origin}/read and paste this code:`,
    '',
    code,
    '',
    `It can be read ${readsOf(sharing)}, until ${moment(expiresAt)}.`,
    ...(revealAt
      ? [`It opens on ${moment(revealAt.toISOString())}; asking before costs nothing.`]
      : []),
    ...(revealWhen === null
      ? []
      : ['It is shut until a monitor falls silent; asking before costs nothing.']),
    ...(hasPassword ? ['It asks for a password, which you get separately.'] : []),
  ]
  return `${lines.join('\n')}\n`
}
