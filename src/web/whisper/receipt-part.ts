/** The receipt on the page that shows a share code: it is kept by a click, and looked at once the code is taken. */
import type { SharedWhisper } from '../../client/whisper.ts'
import { openHere } from '../buying/capability.ts'
import { keep, nameOfKept } from '../buying/keeping.ts'
import type { Terms } from '../buying/terms.ts'
import { button, toast } from '../components.ts'
import { type Child, el } from '../dom.ts'

export type ReceiptPart = {
  terms: Terms
  /** Whether the code, and a password that the page made, were taken. */
  isCodeTaken(): boolean
  /** The receipt is kept in this browser. */
  onKept(): void
  /** Says what is left to do. */
  say(text: string): void
}

const TOO_EARLY = 'Copy or download the code first, and copy a password that this page made.'

/** Empty for a whisper that was bought without a receipt. */
export function receiptPart(whisper: SharedWhisper, part: ReceiptPart): Child[] {
  const { code, ...capability } = whisper
  // The key stays out of what is kept: a receipt does not read.
  const held = { capability, planId: part.terms.planId }
  if (capability.receiptToken === undefined) return []

  /** The first use of a receipt ends the repeats of the purchase, and with them the way back to the code. */
  function isEarly(): boolean {
    if (part.isCodeTaken()) return false
    part.say(TOO_EARLY)
    return true
  }

  function keepIt(): void {
    if (isEarly()) return
    try {
      keep(held)
    } catch {
      toast('This browser could not keep it: its storage is full or switched off. Download it.')
      return
    }
    part.onKept()
  }

  function look(): void {
    if (isEarly()) return
    openHere({ ...held, isSaved: nameOfKept(capability.publicId) !== null })
    location.assign('/receipt')
  }

  return [
    el('h3', {}, 'The receipt'),
    el(
      'p',
      {},
      'It says when the whisper was read, to the minute, and can destroy it. It cannot read it. Keep it in this browser, or download it with the code.',
    ),
    el(
      'div',
      { class: 'row even' },
      button('Keep the receipt', keepIt),
      button('Look at it', look),
    ),
  ]
}
