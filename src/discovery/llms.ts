/**
 * /llms.txt (llmstxt.org): how a program buys, saves and uses capabilities, in two pages at most. Each product
 * has a part of it.
 */
import { operatorLinks } from '../http/operator.ts'
import { type Announced, noticeOf, titleOf } from './announced.ts'

/** @param guides the parts of all products that are switched on. */
export function llmsText(announced: Announced, guides: readonly string[]): string {
  const notice = noticeOf(announced)
  const parts = [
    INTRODUCTION,
    ...(notice ? [`${notice}\n`] : []),
    ...(announced.products.length > 0 ? [pricesOf(announced.products)] : []),
    howToBuy(announced),
    ...guides.filter((guide) => guide !== ''),
    furtherOf(announced) + operatorOf(announced),
  ]
  return withAddress(parts.join('\n'), announced.baseUrl)
}

/** How to buy one of these products, and what to do with what was bought. */
export function howToBuy({
  isSimulator,
  products,
}: Pick<Announced, 'isSimulator' | 'products'>): string {
  const byUrl = products.flatMap(({ name, plans }) =>
    plans.flatMap(({ planId, byUrl }) => (byUrl === null ? [] : `${name}/${planId}`)),
  )
  return [
    ...(byUrl.length > 0 ? [oneUrl(byUrl)] : []),
    BUYING,
    ...(isSimulator ? [SIMULATED] : []),
    SAVING,
  ].join('\n')
}

const operatorOf = ({ operator }: Announced): string =>
  operatorLinks(operator)
    .map(([name, href]) => `- ${name}: ${href.replace(/^mailto:/, '')}\n`)
    .join('')

export const withAddress = (text: string, baseUrl: string): string =>
  text.replaceAll('{base_url}', baseUrl)

const INTRODUCTION = `# Mayfly

> Temporary tools, paid in satoshis over the Lightning network, without accounts: you pay an invoice and get a
> capability, an access key made of bearer tokens that expire.

Base address: {base_url}
`

const pricesOf = (products: Announced['products']): string => `## Prices

${products
  .map(({ name, plans }) => {
    const prices = plans.map(({ planId, priceSats }) => `${planId} ${priceSats} sat`)
    return `- ${titleOf(name)}: ${prices.join(', ')}\n`
  })
  .join('')}`

/** @param sold such as `catch/spark`. */
function oneUrl(sold: readonly string[]): string {
  return `## Buying with one URL

A client that pays by itself (MPP or L402) needs only {base_url}/api/buy/{product}/{plan}, with GET or POST and
no header of ours; a whisper with POST, its ciphertext as the body. On sale: ${sold.join(', ')}.
402 shows Payment first and L402 after it; with /l402 behind it, L402 alone. Each request without a credential
is a new order. Pay one, and send the same request with its credential: 200 is the capability, again and again
until its first use. If an answer is lost, send the same credential again, and never pay twice.
`
}

const BUYING = `## Buying with a key

Each purchase is one POST with a header Idempotency-Key: <a fresh UUIDv4>, made before you pay. The same
key and body get the same order and the same invoice, however often and from wherever you send them. Use a
new key only for a new purchase. If another client's POST with your key is shown the quote, the order is
delivered only to proof of payment: a credential of flow 2 or 3, or the key with the header
Payment-Preimage: <64 hex>, on the poll or the repeated POST. Nothing is charged before you pay the invoice:
check its amount first. Choose one of three flows. They show the same order, and you may switch between them.

1. Native. Send the POST. 402 has {"orderId","amountSats","bolt11","paymentHash","expiresAt",…}. Pay
   bolt11 with any wallet. Then GET /api/payments/{orderId} about once a second: 402 while unpaid, then
   once 200 {"settled":true,"resource":{…}}. With the Idempotency-Key, the poll can be repeated.
2. Payment (HTTP Payment Authentication, method lightning, intent charge). Add X-Payment-Protocol: payment
   (or Accept-Payment: lightning/charge). 402 has WWW-Authenticate: Payment …, whose request parameter
   holds the invoice. Pay it, then repeat the identical request with Authorization: Payment <base64url of
   {"challenge":{the parameters},"payload":{"preimage":"<hex>"}}>. 200 is the capability, with a receipt.
3. L402. Add X-Payment-Protocol: l402. 402 has WWW-Authenticate: L402 macaroon="…", invoice="…". Pay it,
   then repeat the identical request with Authorization: L402 <macaroon>:<preimage as hex>.

Flows 2 and 3 need a wallet that shows the preimage. A credential is valid only for its own order, route
and body. If the answer to a paid request is lost, send the same request again: never pay again. Errors are
{"error":"<phrase>"}.

- 402 after you have paid: you sent another key, route or body than you paid for.
- 404 "proof of payment required": it is paid; do not pay again, and send Payment-Preimage. Or, as whenever
  you have paid and got nothing: POST /api/payments/recover {"bolt11":"<the whole invoice>","preimage":"<hex>"}.
- 401: the credential is malformed, or its preimage is wrong. Mend it; never pay because of a 401.
- 404 "already delivered": you already got it. 404 "order expired": it was not paid in time; use a new key to buy
  again. 429 and 503: wait Retry-After seconds, then repeat the request.
`

const SIMULATED = `The simulator pays instead of a wallet: POST /simulator/pay {"bolt11":"…"} answers {"preimage","paymentHash"}.
`

const SAVING = `## Saving what you bought

You can repeat the answer until you first use one of its tokens, for at most 24 hours. Save it first. Tokens are secrets
that nobody can recover: keep them out of URLs and logs. Send Authorization: Bearer <token>. Before it ends, buy its plan
once more: POST /api/catch/{publicId}/extend (or /api/pulse/…) with the same body and X-Owner-Token.
`

/** A tool's token is in `_meta`, where no model reads it. */
const furtherOf = ({ hasMcp }: Announced): string => `## More

- {base_url}/openapi.json: the operations, with prices; {base_url}/openapi-all.json: all of them.
- {base_url}/api/catalog: plans, limits, prices, and whether the checkout is open.${hasMcp ? TOOLS : ''}
`

const TOOLS =
  '\n- {base_url}/mcp: all of this as tools of MCP. Results have the tokens, and tools take them; with ?tokens=meta they are in _meta instead.'
