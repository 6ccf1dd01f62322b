/** An invoice and the ways to pay it: the QR code, a wallet's link, a wallet in the browser, the simulator. */
import { useMemo, useState } from 'preact/hooks'
import { isProof } from '../../client/asked-wallet.ts'
import type { PaymentQuote } from '../../client/index.ts'
import { duration } from '../lib/format.ts'
import { isSimulator, isTroubled, now, type Reach } from '../lib/service.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { toast } from '../ui/overlay.tsx'
import { Qr, State, Trouble } from '../ui/show.tsx'

/** The part of WebLN (webln.guide) that pays. Browser extensions and the browsers of some wallets offer it. */
type WebLn = {
  enable(): Promise<unknown>
  sendPayment(bolt11: string): Promise<{ preimage?: unknown } | undefined>
}

/** How long an invoice usually lives: the whole of the bar. */
const WHOLE_MS = 15 * 60_000
const PHONE = '(pointer: coarse)'

type InvoiceProps = {
  quote: PaymentQuote
  /** Called with the preimage after a wallet of this page has paid. */
  onProof: (preimage: string) => void
}

export function Invoice({ quote, reach, onProof }: InvoiceProps & { reach: Reach }) {
  const left = Date.parse(quote.expiresAt) - now.value
  const whole = useMemo(() => Math.max(WHOLE_MS, Date.parse(quote.expiresAt) - now.peek()), [quote])
  const isOver = left <= 0
  const isLost = isTroubled(reach)
  const waiting = isOver
    ? 'The invoice has expired. Checking for a payment…'
    : 'Waiting for payment…'
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
            {isLost ? (
              <span>
                <Trouble reach={reach} /> Your payment is safe.
              </span>
            ) : (
              waiting
            )}
          </State>
          <span class="quiet number time-left">
            {isOver ? 'Expired' : `${duration(left)} left`}
          </span>
        </div>
      </div>
    </>
  )
}

/** One primary action: what pays at once, or else what the device is used to. */
function Means({ quote, onProof }: InvoiceProps) {
  const { bolt11 } = quote
  const [isPaying, setPaying] = useState(false)
  const wallet = walletHere()
  const isPhone = matchMedia(PHONE).matches
  async function pay({ pay, refusal }: Wallet): Promise<void> {
    setPaying(true)
    try {
      const preimage = await pay(bolt11)
      // A wallet's extension is a stranger. Whether it paid, the page learns from the service.
      const isPaid = typeof preimage === 'string' && (await isProof(preimage, quote.paymentHash))
      if (isPaid) onProof(preimage)
    } catch {
      setPaying(false)
      toast(refusal)
    }
  }
  return (
    <>
      <Qr text={`lightning:${bolt11}`.toUpperCase()} label="QR code of the Lightning invoice" />
      {wallet && (
        <Button weight="primary" size="large wide" disabled={isPaying} onClick={() => pay(wallet)}>
          {wallet.title}
        </Button>
      )}
      <div class="pairs">
        <Button href={`lightning:${bolt11}`} weight={!wallet && isPhone ? 'primary' : 'secondary'}>
          Open in a wallet
        </Button>
        <CopyButton text={bolt11} weight={!wallet && !isPhone ? 'primary' : 'secondary'}>
          Copy the invoice
        </CopyButton>
      </div>
    </>
  )
}

type Wallet = {
  title: string
  /** Pays, and gives the preimage if it tells. */
  pay: (bolt11: string) => Promise<unknown>
  refusal: string
}

/** What pays in this page: the simulator, or a wallet of the browser. */
function walletHere(): Wallet | null {
  if (isSimulator) {
    const refusal = 'The simulator did not pay. Nothing was charged.'
    return { title: 'Pay (simulator)', pay: paySimulated, refusal }
  }
  const { webln } = globalThis as { webln?: WebLn }
  if (!webln) return null
  return {
    title: 'Pay with this browser’s wallet',
    async pay(bolt11) {
      await webln.enable()
      return (await webln.sendPayment(bolt11))?.preimage
    },
    refusal: 'The wallet reported no payment. If it paid after all, this page will notice.',
  }
}

async function paySimulated(bolt11: string): Promise<unknown> {
  const answer = await fetch('/simulator/pay', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ bolt11 }),
  })
  if (!answer.ok) throw new Error(String(answer.status))
  return ((await answer.json()) as { preimage?: unknown }).preimage
}
