/** An invoice and the ways to pay it: the QR code, a wallet's link, a wallet in the browser, the simulator. */
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { PaymentQuote } from '../../client/index.ts'
import { hex, hexBytes } from '../../lib/bytes.ts'
import { remaining } from '../lib/format.ts'
import { isSimulator, now, type Reach } from '../lib/service.ts'
import { toast } from '../ui/overlay.ts'
import { Button, CopyButton, handOver, LinkButton, Qr, State } from '../ui/ui.tsx'

/** The part of WebLN (webln.guide) that pays. Browser extensions and the browsers of some wallets offer it. */
type WebLn = {
  enable(): Promise<unknown>
  sendPayment(bolt11: string): Promise<{ preimage?: unknown } | undefined>
}

/** How long an invoice usually lives: the whole of the bar. */
const WHOLE_MS = 15 * 60_000
const PHONE = '(pointer: coarse)'

export function Invoice({
  quote,
  reach,
  onProof,
}: {
  quote: PaymentQuote
  reach: Reach
  /** Called with the preimage after a wallet of this page has paid. */
  onProof: (preimage: string) => void
}) {
  const left = Date.parse(quote.expiresAt) - now.value
  const whole = useMemo(() => Math.max(WHOLE_MS, Date.parse(quote.expiresAt) - now.peek()), [quote])
  const isOver = left <= 0
  const isLost = !reach.isReached
  return (
    <>
      {/* A wallet would refuse an expired invoice. */}
      <div class="stack" inert={isOver}>
        <Means quote={quote} onProof={onProof} />
      </div>
      <div class="stack tight">
        <progress aria-label="Time left" max={whole} value={Math.max(left, 0)} />
        <div class="row between small">
          <State kind={isLost ? 'lost' : 'waiting'} busy={!isLost} live>
            {waitingText({ reach, isOver })}
          </State>
          <span class="quiet number">{isOver ? 'Expired' : `${remaining(left)} left`}</span>
        </div>
      </div>
    </>
  )
}

function waitingText({ reach, isOver }: { reach: Reach; isOver: boolean }): string {
  if (reach.pauseSeconds !== null) {
    return `Too many requests. Checking again in ${reach.pauseSeconds} s; your payment is safe.`
  }
  if (!reach.isReached) {
    return navigator.onLine
      ? 'The service does not answer. Retrying; your payment is safe.'
      : 'You are offline. Retrying; your payment is safe.'
  }
  return isOver ? 'The invoice has expired. Checking for a payment…' : 'Waiting for payment…'
}

function Means({ quote, onProof }: { quote: PaymentQuote; onProof: (preimage: string) => void }) {
  const { bolt11 } = quote
  const isPaying = useSignal(false)
  const { webln } = globalThis as { webln?: WebLn }
  const isPhone = matchMedia(PHONE).matches
  const hasPrimary = isSimulator || webln !== undefined
  async function paying(work: () => Promise<boolean>): Promise<void> {
    isPaying.value = true
    isPaying.value = await work()
  }
  return (
    <>
      <Qr text={`lightning:${bolt11}`.toUpperCase()} label="QR code of the Lightning invoice" />
      {isSimulator && (
        <Button
          weight="primary"
          size="large wide"
          disabled={isPaying.value}
          onClick={() => paying(() => paySimulated(bolt11, onProof))}
        >
          Pay (simulator)
        </Button>
      )}
      {webln && (
        <Button
          weight={isSimulator ? 'secondary' : 'primary'}
          size="large wide"
          disabled={isPaying.value}
          onClick={() => paying(() => payHere(webln, quote, onProof))}
        >
          Pay with this browser’s wallet
        </Button>
      )}
      <div class="pairs">
        <LinkButton
          href={`lightning:${bolt11}`}
          weight={!hasPrimary && isPhone ? 'primary' : 'secondary'}
          onClick={handOver}
        >
          Open in a wallet
        </LinkButton>
        <CopyButton text={bolt11} weight={!hasPrimary && !isPhone ? 'primary' : 'secondary'}>
          Copy the invoice
        </CopyButton>
      </div>
    </>
  )
}

/** Lets the wallet of the browser pay. Whether it did, the page learns from the service. Returns whether it may have. */
async function payHere(
  webln: WebLn,
  { bolt11, paymentHash }: PaymentQuote,
  onProof: (preimage: string) => void,
): Promise<boolean> {
  try {
    await webln.enable()
    const paid = await webln.sendPayment(bolt11)
    const preimage = await provenBy(paid?.preimage, paymentHash)
    if (preimage !== null) onProof(preimage)
    return true
  } catch {
    toast('The wallet reported no payment. If it paid after all, this page will notice.')
    return false
  }
}

/** The preimage if it opens the payment hash. A wallet's extension is a stranger. */
async function provenBy(preimage: unknown, paymentHash: string): Promise<string | null> {
  if (typeof preimage !== 'string' || !/^[0-9a-f]{64}$/.test(preimage)) return null
  const bytes = hexBytes(preimage)
  const digest = bytes && (await crypto.subtle.digest('SHA-256', bytes))
  return digest && hex(new Uint8Array(digest)) === paymentHash ? preimage : null
}

/** Pays like a wallet. The page learns of the payment from the service. Returns whether it may have paid. */
async function paySimulated(bolt11: string, onProof: (preimage: string) => void): Promise<boolean> {
  try {
    const answer = await fetch('/simulator/pay', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ bolt11 }),
    })
    if (answer.ok) {
      const { preimage } = (await answer.json()) as { preimage?: unknown }
      if (typeof preimage === 'string') onProof(preimage)
      return true
    }
    toast('The simulator did not pay. Nothing was charged.')
  } catch {
    toast('The simulator could not be reached. Nothing was charged.')
  }
  return false
}
