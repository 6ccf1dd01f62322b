/** The ways to pay an invoice from this page: the QR code, a wallet's link, a wallet in the browser, the simulator. */
import type { PaymentQuote } from '../../client/index.ts'
import { hex, hexBytes } from '../../lib/bytes.ts'
import { button, copyButton, toast } from '../components.ts'
import { el } from '../dom.ts'
import { handOver } from './guard.ts'
import { qrCode } from './qr.ts'

const isSimulator = document.documentElement.dataset.mode === 'simulator'

/** The part of WebLN (webln.guide) that pays. Browser extensions and the browsers of some wallets offer it. */
type WebLn = {
  enable(): Promise<unknown>
  sendPayment(bolt11: string): Promise<{ preimage?: unknown } | undefined>
}

/** @param onProof is called with the preimage after a wallet of this page has paid. */
export function meansOfPayment(
  quote: PaymentQuote,
  onProof: (preimage: string) => void,
): HTMLElement {
  const { bolt11 } = quote
  const webln = (globalThis as { webln?: WebLn }).webln
  const here = button(
    'Pay with this browser’s wallet',
    () => payHere(webln, quote, { here, onProof }),
    {
      kind: 'primary wide',
    },
  )
  const simulated = button('Pay (simulator)', () => paySimulated(bolt11, simulated, onProof), {
    kind: 'primary wide',
  })
  const isMain = !isSimulator && !webln
  const wallet = el(
    'a',
    {
      class: isMain ? 'button primary' : 'button',
      href: `lightning:${bolt11}`,
      onclick: handOver,
    },
    'Open in a wallet',
  )
  return el(
    'div',
    { class: 'stack' },
    el(
      'div',
      { class: 'qr' },
      qrCode(`lightning:${bolt11}`.toUpperCase(), 'QR code of the Lightning invoice'),
    ),
    isSimulator && simulated,
    webln && here,
    el(
      'div',
      { class: 'row even' },
      wallet,
      copyButton(() => bolt11, { label: 'Copy the invoice' }),
    ),
  )
}

type Paying = { here: HTMLButtonElement; onProof: (preimage: string) => void }

/** Lets the wallet of the browser pay. Whether it did, the page learns from the service. */
async function payHere(
  webln: WebLn | undefined,
  { bolt11, paymentHash }: PaymentQuote,
  { here, onProof }: Paying,
): Promise<void> {
  here.disabled = true
  try {
    await webln?.enable()
    const paid = await webln?.sendPayment(bolt11)
    const preimage = await provenBy(paid?.preimage, paymentHash)
    if (preimage !== null) onProof(preimage)
  } catch {
    toast('The wallet reported no payment. If it has paid after all, this page will notice.')
    here.disabled = false
  }
}

/** The preimage if it opens the payment hash. A wallet's extension is a stranger. */
async function provenBy(preimage: unknown, paymentHash: string): Promise<string | null> {
  if (typeof preimage !== 'string' || !/^[0-9a-f]{64}$/.test(preimage)) return null
  const bytes = hexBytes(preimage)
  const digest = bytes && (await crypto.subtle.digest('SHA-256', bytes))
  return digest && hex(new Uint8Array(digest)) === paymentHash ? preimage : null
}

/** Pays like a wallet. The page learns of the payment from the service. */
async function paySimulated(
  bolt11: string,
  button: HTMLButtonElement,
  onProof: (preimage: string) => void,
): Promise<void> {
  button.disabled = true
  try {
    const answer = await fetch('/simulator/pay', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ bolt11 }),
    })
    button.disabled = answer.ok
    if (!answer.ok) return toast('The simulator did not pay. Nothing was charged.')
    const { preimage } = (await answer.json()) as { preimage?: unknown }
    if (typeof preimage === 'string') onProof(preimage)
  } catch {
    toast('The simulator could not be reached. Nothing was charged.')
    button.disabled = false
  }
}
