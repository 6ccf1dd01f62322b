/** The page of GATE: verifies a receipt with the keys that the service publishes. */
import { MayflyError } from '../../client/errors.ts'
import { fetchGateKeys } from '../../client/gate.ts'
import { type GateKey, verifyReceipt } from '../../protocol/gate-receipt.ts'
import { button, field, notice } from '../components.ts'
import { byId, el, fill } from '../dom.ts'
import { sentence } from '../format.ts'
import { clock, service } from '../service.ts'
import { receiptView, refusalView } from './receipt-view.ts'

const place = byId('gate')

const OFF =
  'This service does not run GATE, so it has signed no receipts and has no keys to check one. A receipt names the service that signed it: check it there.'

await start()

async function start(): Promise<void> {
  try {
    showForm(await fetchGateKeys(service))
  } catch (error) {
    if (error instanceof MayflyError && error.status === 404)
      fill(place, notice('', el('p', {}, OFF)))
    else {
      const again = button('Try again', start)
      fill(place, el('div', { class: 'stack' }, notice('bad', el('p', {}, sentence(error))), again))
    }
  }
}

function showForm(keys: readonly GateKey[]): void {
  const text = el('textarea', {
    rows: '6',
    spellcheck: 'false',
    autocomplete: 'off',
    autocapitalize: 'off',
    placeholder: 'eyJhbGciOiJFZERTQSIs…',
  })
  const verdict = el('div', { class: 'verdict', 'aria-live': 'polite' })
  let asked = 0

  async function check(): Promise<void> {
    const mine = ++asked
    const receipt = text.value.trim()
    const shown = receipt === '' ? null : await viewOf(receipt, keys)
    // The user has entered another text meanwhile, which gets its own answer.
    if (mine === asked) fill(verdict, shown)
  }

  text.addEventListener('input', check)
  fill(
    place,
    el(
      'div',
      { class: 'stack' },
      field('The receipt, from the header Gate-Receipt or the answer’s “receipt”', text),
      verdict,
    ),
  )
  // After a reload, the browser restores the text.
  void check()
}

async function viewOf(receipt: string, keys: readonly GateKey[]): Promise<HTMLElement> {
  const verdict = await verifyReceipt(receipt, keys)
  if (verdict.outcome === 'ok') return receiptView(verdict.receipt, clock.now())
  return refusalView(verdict.outcome === 'refused' ? verdict.reason : 'unknown key', receipt)
}
