/** Checks the signature of one request. The secret stays in this form: it is neither stored nor sent. */
import type { CatchEvent } from '../../client/index.ts'
import { guessProvider, verifySignature } from '../../client/signature.ts'
import { HMAC_ALGORITHMS, type HmacAlgorithm } from '../../protocol/signatures/mac.ts'
import {
  SIGNATURE_PROVIDERS,
  type SignatureProvider,
  type SignatureRules,
} from '../../protocol/signatures/signatures.ts'
import { field } from '../components.ts'
import { el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'

const NAMES: Record<SignatureProvider, string> = {
  github: 'GitHub',
  stripe: 'Stripe',
  slack: 'Slack',
  shopify: 'Shopify',
  'standard-webhooks': 'Standard Webhooks, Svix',
  zoom: 'Zoom',
  x: 'X',
  hmac: 'Another HMAC',
}

export function signatureForm(event: CatchEvent): HTMLElement {
  if (!globalThis.crypto?.subtle) {
    return el('p', {}, 'Browsers check signatures only on pages of https addresses.')
  }
  const guessed = guessProvider(event)
  const provider = choice('signature-provider', SIGNATURE_PROVIDERS, (name) => NAMES[name])
  provider.value = guessed ?? 'hmac'
  const secret = input('signature-secret', { type: 'password', required: true })
  const header = input('signature-header', { placeholder: 'X-Signature' })
  const prefix = input('signature-prefix', { placeholder: 'sha256=' })
  const algorithms = Object.keys(HMAC_ALGORITHMS) as HmacAlgorithm[]
  const algorithm = choice('signature-algorithm', algorithms, (name) => HMAC_ALGORITHMS[name].name)
  algorithm.value = 'sha256'
  const encoding = choice('signature-encoding', ['hex', 'base64'] as const, (name) => name)
  const own = el(
    'div',
    { class: 'signature-fields' },
    field('Header', header),
    field('Before the signature', prefix),
    field('Hash', algorithm),
    field('Written in', encoding),
  )
  const verdict = el('div', { role: 'status' })
  const showOwn = (): void => {
    own.hidden = provider.value !== 'hmac'
    header.required = provider.value === 'hmac'
    fill(verdict)
  }
  showOwn()

  async function check(submitted: Event): Promise<void> {
    submitted.preventDefault()
    const chosen = provider.value as SignatureProvider
    const rules: SignatureRules =
      chosen === 'hmac'
        ? {
            provider: chosen,
            header: header.value.trim(),
            prefix: prefix.value,
            algorithm: algorithm.value as HmacAlgorithm,
            encoding: encoding.value as 'hex' | 'base64',
          }
        : { provider: chosen }
    const { valid, sentence } = await verifySignature(event, { ...rules, secret: secret.value })
    fill(
      verdict,
      el(
        'p',
        { class: 'row' },
        el('span', { class: valid ? 'badge good' : 'badge bad' }, valid ? 'Valid' : 'Not valid'),
        plainly(sentence),
      ),
    )
  }

  return el(
    'form',
    { class: 'stack', onsubmit: check, autocomplete: 'off' },
    guessed !== null &&
      el('p', { class: 'small quiet' }, `Its headers are those of ${NAMES[guessed]}.`),
    el(
      'div',
      { class: 'signature-fields', onchange: showOwn },
      field('Signed by', provider),
      field('Secret of the sender', secret),
    ),
    own,
    el(
      'div',
      { class: 'row' },
      el('button', { type: 'submit', class: 'button small' }, 'Check the signature'),
      el(
        'span',
        { class: 'small quiet' },
        'The secret stays in this page: it is not stored and not sent.',
      ),
    ),
    verdict,
  )
}

function input(id: string, attributes: Record<string, string | true>): HTMLInputElement {
  return el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', id, ...attributes })
}

function choice<Name extends string>(
  id: string,
  names: readonly Name[],
  label: (name: Name) => string,
): HTMLSelectElement {
  return el('select', { id }, ...names.map((name) => el('option', { value: name }, label(name))))
}
