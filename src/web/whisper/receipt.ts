/** The page of a receipt: who bought a WHISPER sees when it was read, and can destroy it. */
import type { ReceiptHolder } from '../../client/whisper.ts'
import { startOpener } from '../buying/opener.ts'
import { byId } from '../dom.ts'
import { openReceipt } from './receipt-view.ts'

const place = byId('receipt')

await startOpener({
  place,
  product: 'whisper',
  what: 'a receipt',
  open: (capability, opened) => openReceipt(place, capability as ReceiptHolder, opened),
})
