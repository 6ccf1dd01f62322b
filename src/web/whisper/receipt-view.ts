/** Shows a receipt: the state of a whisper, its reads, its switch, who is told, and the way to destroy it. */
import { createAlertsClient } from '../../client/alerts.ts'
import type { WhisperReceipt } from '../../client/index.ts'
import type { ReceiptHolder } from '../../client/whisper.ts'
import type { Opened } from '../buying/opener.ts'
import { announce, button, confirmed, notice, usage } from '../components.ts'
import { type Child, el, fill } from '../dom.ts'
import { count, minute, sentence } from '../format.ts'
import { disclosure } from '../late.ts'
import { attempt, endOf } from '../live.ts'
import { clock, everySecond, service } from '../service.ts'

/** How often a page that is looked at asks again. */
const ASK_AGAIN_MS = 30_000

const TITLES: Record<Exclude<WhisperReceipt['state'], 'active'>, string> = {
  suspended: 'Suspended by the operator',
  exhausted: 'Read for the last time',
  expired: 'Expired',
  destroyed: 'Destroyed',
}

export async function openReceipt(
  place: HTMLElement,
  { publicId, receiptToken = '' }: ReceiptHolder,
  { keeping, signal }: Opened,
): Promise<void> {
  const path = `/api/whisper/${encodeURIComponent(publicId)}`
  const ask = (): Promise<WhisperReceipt> =>
    service.get<WhisperReceipt>({ path: `${path}/receipt`, token: receiptToken }, 'state', 'reads')
  const alerts = createAlertsClient(service, {
    path: `${path}/receipt/alerts`,
    token: receiptToken,
  })
  let shown = await ask()
  let askedAt = clock.now()
  const body = el('div', { class: 'stack' })
  const problems = el('div', {})

  function show(receipt: WhisperReceipt): void {
    const isNews = receipt.readsSpent > shown.readsSpent
    shown = receipt
    askedAt = clock.now()
    fill(problems)
    fill(body, ...factsOf(receipt))
    destroying.hidden = receipt.endedAt !== null
    if (isNews) announce('It was read')
  }

  /** Asks again, and says so if it fails; what is shown stays. */
  async function refresh(): Promise<void> {
    askedAt = clock.now()
    try {
      const receipt = await ask()
      if (!signal.aborted) show(receipt)
    } catch (error) {
      if (!signal.aborted) fill(problems, notice('warn', el('p', {}, sentence(error))))
    }
  }

  /** The receipt stays: it goes on answering for a day. */
  async function destroy(): Promise<void> {
    const isWanted = await confirmed('Destroy this whisper?', {
      body: 'Its bytes are deleted at once, and the code reads nothing any more. Nothing is paid back.',
      action: 'Destroy it',
    })
    if (!isWanted) return
    await attempt(() => service.perform({ method: 'DELETE', path, token: receiptToken }))
    await refresh()
  }

  const destroying = button('Destroy it now', destroy, { kind: 'small danger' })

  fill(
    place,
    el(
      'div',
      { class: 'stack' },
      keeping,
      el(
        'section',
        { class: 'card stack', 'aria-label': 'Receipt' },
        problems,
        body,
        el(
          'div',
          { class: 'row between' },
          button('Ask again', () => attempt(refresh), { kind: 'small' }),
          destroying,
        ),
      ),
      el(
        'section',
        { class: 'card', 'aria-label': 'Alerts' },
        disclosure('Alerts: who is told when it is read', async () =>
          (await import('../alerts-view.ts')).alertsView(alerts, {
            hasEnded: shown.endedAt !== null,
          }),
        ),
      ),
    ),
  )
  show(shown)
  everySecond(signal, () => {
    const isDue = clock.now() - askedAt >= ASK_AGAIN_MS && shown.endedAt === null
    if (isDue && document.visibilityState === 'visible') void refresh()
  })
}

function factsOf(receipt: WhisperReceipt): Child[] {
  const { reads, readLimit, readsSpent, readsLeft, endedAt, expiresAt, revealAt } = receipt
  const bound = receipt.switch
  const isShut = revealAt !== null && Date.parse(revealAt) > clock.now()
  return [
    el('h2', {}, titleOf(receipt)),
    usage('Reads', { used: readsSpent, limit: readLimit, show: count }),
    el('p', {}, `${count(readsLeft)} ${readsLeft === 1 ? 'read is' : 'reads are'} left.`),
    el(
      'p',
      {},
      endedAt === null ? `Ends ${endOf(expiresAt)}.` : `Ended ${minute(endedAt)}.`,
      isShut && ` Nobody can read it before ${minute(revealAt)}.`,
    ),
    ...(bound === null ? [] : [el('h3', {}, 'The switch'), switchLine(bound)]),
    el('h3', {}, 'When it was read'),
    reads.length === 0
      ? el('p', { class: 'quiet' }, 'Not yet.')
      : el(
          'ol',
          { class: 'number', tabindex: '0', 'aria-label': 'The reads, newest first' },
          ...reads.map((read) => el('li', {}, minute(read))),
        ),
    el(
      'p',
      { class: 'small quiet' },
      endedAt === null
        ? 'To the minute, and without a word about the reader.'
        : 'This receipt answers for 24 hours after the end.',
    ),
  ]
}

function titleOf({ state, readsSpent }: WhisperReceipt): string {
  if (state !== 'active') return TITLES[state]
  return readsSpent === 0 ? 'Not read yet' : 'It was read'
}

function switchLine({ state, since, worksUntil }: NonNullable<WhisperReceipt['switch']>) {
  const from = minute(since)
  const words = {
    waiting: `It waits for the next ping of the monitor, since ${from}. From that ping on it is armed.`,
    armed: `Armed since ${from}: the whisper opens when the monitor falls silent. That works until ${minute(worksUntil)}.`,
    open: `Open since ${from}: the monitor fell silent, and the code reads the whisper.`,
    dead: `Dead since ${from}: it can never open any more, because the monitor has ended or lost its pings.`,
  }
  return el('p', {}, words[state])
}
