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

/** Empty for a whisper that was bought without a receipt. */
export function receiptPart(whisper: SharedWhisper, part: ReceiptPart): Child[] {
  const { code, ...capability } = whisper
  // The key stays out of what is kept: a receipt does not read.
  const held = { capability, planId: part.terms.planId }
  if (capability.receiptToken === undefined) return []

  function keepIt(): boolean {
    try {
      keep(held)
    } catch {
      toast('This browser could not keep it: its storage is full or switched off. Download it.')
      return false
    }
    part.onKept()
    return true
  }

  function look(): void {
    // The first use of the receipt ends the repeats of the purchase, and with them the way back to the code.
    if (!part.isCodeTaken()) {
      part.say('Copy or download the code first.')
      return
    }
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
