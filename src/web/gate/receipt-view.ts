/** Explains a GATE receipt, or why it is invalid. */
import { base64Bytes, utf8Text } from '../../lib/bytes.ts'
import type { GateReceipt } from '../../protocol/gate-receipt.ts'
import { notice } from '../components.ts'
import { type Child, el } from '../dom.ts'
import { moment, sats } from '../format.ts'

/** A smaller clock difference is not mentioned. */
const MAX_SKEW_MS = 60_000

/** Shows a receipt with a valid signature: what it admits now, then each claim. */
export function receiptView(receipt: GateReceipt, now: number): HTMLElement {
  return el(
    'section',
    { class: 'stack', 'aria-label': 'The receipt' },
    el('p', { class: 'state', 'data-state': 'paid' }, 'The signature is valid'),
    worth(receipt, now),
    receipt.iss !== location.origin &&
      notice(
        'warn',
        el(
          'p',
          {},
          'It names ',
          el('code', {}, receipt.iss),
          ' as its issuer, which is not the address of this page. It was signed with a key of this service, so both are most likely the same service under two names.',
        ),
      ),
    el('table', { 'aria-label': 'Claims' }, el('tbody', {}, ...claims(receipt).map(claimRow))),
  )
}

/** Says why a receipt is refused. Of its unverified claims, it shows only the issuer. */
export function refusalView(reason: string, receipt: string): HTMLElement {
  const issuer = reason === 'unknown key' ? claimedIssuer(receipt) : null
  const isOthers = issuer !== null && issuer !== location.origin
  return notice(
    'bad',
    el(
      'p',
      {},
      el('strong', {}, isOthers ? 'From another service. ' : (TITLES[reason] ?? 'Not valid. ')),
      ...(isOthers
        ? [
            'It claims to be from ',
            el('code', {}, issuer),
            ', and this page only has the keys of its own service. Check it there.',
          ]
        : [REASONS[reason] ?? 'It is not a receipt of GATE.']),
    ),
  )
}

const TITLES: Record<string, string> = {
  malformed: 'Not a receipt. ',
  'not a GATE receipt': 'Another kind of token. ',
}

const REASONS: Record<string, string> = {
  malformed:
    'A receipt is one line of three parts with two dots between them. Was all of it copied?',
  'not a GATE receipt':
    'This is some other kind of signed text. The header of a receipt says EdDSA and gate-receipt+jwt.',
  'unknown key':
    'It was not signed with any current key of this service. It is forged, or so old that its key has been replaced twice since.',
  'the signature is wrong':
    'The signature does not match the text. Something was changed after signing, or a character was lost in copying.',
  'a claim is missing': 'The signature is valid, but a claim that every receipt has is missing.',
}

function worth({ iat, exp, htm, htp, sat }: GateReceipt, now: number): HTMLElement {
  const what = [el('strong', {}, `${htm} ${htp}`), ` was paid for with ${sats(sat)}. `]
  if (iat * 1000 > now + MAX_SKEW_MS) {
    return notice(
      'warn',
      el('p', {}, ...what, 'It is dated in the future, so this clock or theirs is wrong.'),
    )
  }
  const end = moment(new Date(exp * 1000).toISOString())
  const rest =
    exp * 1000 > now
      ? `It admits this request once, until ${end}. After that it is still a record of the payment.`
      : `It expired at ${end} and admits nothing now. It is still a valid record of the payment.`
  return notice('', el('p', {}, ...what, rest))
}

type Claim = { names: string; label: string; value: Child[]; note?: string }

function claims(receipt: GateReceipt): Claim[] {
  const { iss, aud, jti, iat, exp, intent, route, htm, htp, req, sat, ph, net, by } = receipt
  const when = (seconds: number): string => moment(new Date(seconds * 1000).toISOString())
  return [
    { names: 'htm, htp', label: 'The request', value: [el('code', {}, `${htm} ${htp}`)] },
    {
      names: 'sat',
      label: 'Its price',
      value: [sats(sat)],
      note: 'paid to the project’s own wallet, not to this service',
    },
    {
      names: 'net',
      label: 'Network',
      value: [net],
      ...(net === 'mainnet' ? {} : { note: 'a test network: no real money' }),
    },
    {
      names: 'by',
      label: 'How it was verified',
      value: [
        by === 'provider'
          ? 'The wallet that received the payment confirmed it.'
          : 'The payer showed the preimage, which only paying reveals.',
      ],
    },
    { names: 'iat', label: 'Signed', value: [when(iat)] },
    { names: 'exp', label: 'Valid until', value: [when(exp)] },
    { names: 'route', label: 'Route', value: [el('code', {}, route)] },
    { names: 'aud', label: 'For the project', value: [el('code', {}, aud)] },
    { names: 'iss', label: 'Signed by', value: [el('code', {}, iss)] },
    { names: 'ph', label: 'Payment hash', value: [el('code', {}, ph)] },
    {
      names: 'req',
      label: 'Request digest',
      value: [el('code', {}, req)],
      note: 'binds project, route, method, path and the bytes of the body',
    },
    { names: 'intent', label: 'Payment intent', value: [el('code', {}, intent)] },
    {
      names: 'jti',
      label: 'Receipt id',
      value: [el('code', {}, jti)],
      note: 'the same for every copy, so that it is accepted only once',
    },
  ]
}

function claimRow({ names, label, value, note }: Claim): HTMLElement {
  return el(
    'tr',
    {},
    el('th', { scope: 'row' }, label, ' ', el('code', { class: 'claim' }, names)),
    el('td', {}, ...value, note !== undefined && el('div', { class: 'small quiet' }, note)),
  )
}

/** The issuer in an unverified receipt, which is only a hint. */
function claimedIssuer(receipt: string): string | null {
  const bytes = base64Bytes(receipt.split('.')[1] ?? '')
  const text = bytes && utf8Text(bytes)
  try {
    const claims: unknown = JSON.parse(text ?? '')
    const issuer =
      typeof claims === 'object' && claims !== null && 'iss' in claims ? claims.iss : null
    return typeof issuer === 'string' && /^https?:\/\/[^\s/]{1,255}$/.test(issuer) ? issuer : null
  } catch {
    return null
  }
}
