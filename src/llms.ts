/**
 * /llms.txt (llmstxt.org): how a program buys, saves and uses capabilities, in two pages at most. Each product
 * has a part of it.
 */

export function llmsText({
  baseUrl,
  isSimulator,
  guides,
}: {
  baseUrl: string
  isSimulator: boolean
  /** The products' parts. `{base_url}` stands for the service's address. */
  guides: readonly string[]
}): string {
  const parts = [INTRODUCTION, BUYING, ...(isSimulator ? [SIMULATED] : []), SAVING, ...guides]
  return [...parts, FURTHER].join('\n').replaceAll('{base_url}', baseUrl)
}

const INTRODUCTION = `# Mayfly

> Temporary, narrowly scoped capabilities, paid in satoshis over the Lightning network. No accounts:
> you pay an invoice and get bearer tokens, which expire.

Base address: {base_url}
`

const BUYING = `## Buying

Each purchase is one POST with a header Idempotency-Key: <a fresh UUIDv4>, made before you pay. The same
key and body get the same order and the same invoice, however often and from wherever you send them. Use a
new key only for a new purchase. If a key can be guessed (a counter, a hash, a UUIDv5) and comes from two
addresses, its order is delivered only to proof of payment: a credential of flow 2 or 3, or the header
Payment-Preimage: <64 hex> on the poll or the repeated POST.
Nothing is charged before you pay the invoice. Check its amount before you pay.

Choose one of three flows. They show the same order, and you may switch between them.

1. Native. Send the POST. 402 has {"orderId","amountSats","bolt11","paymentHash","expiresAt",…}. Pay
   bolt11 with any wallet. Then GET /api/payments/{orderId} about once a second: 402 while unpaid, then
   once 200 {"settled":true,"resource":{…}}. Send the Idempotency-Key with the poll to be able to
   repeat it.
2. Payment (HTTP Payment Authentication, method lightning, intent charge). Add
   X-Payment-Protocol: payment (or Accept-Payment: lightning/charge). 402 has
   WWW-Authenticate: Payment …; its request parameter holds the invoice. Pay it, then repeat the
   identical request with Authorization: Payment <base64url of
   {"challenge":{the parameters},"payload":{"preimage":"<hex>"}}>. 200 is the capability, with a
   Payment-Receipt.
3. L402. Add X-Payment-Protocol: l402. 402 has
   WWW-Authenticate: L402 macaroon="…", invoice="…". Pay it, then repeat the identical request with
   Authorization: L402 <macaroon>:<preimage as hex>. 200 is the capability.

Flows 2 and 3 need a wallet that shows the preimage. A credential is valid only for its own order, route
and body. If the answer to a paid request is lost, send the same request again: never pay again.

- 402 after you have paid: you sent another key, route or body than you paid for.
- 404 "proof of payment required": it is paid; do not pay again, and send Payment-Preimage.
- 401: the L402 credential is malformed. 404 "already delivered": you already got it. 404 "order
  expired": it was not paid in time; use a new key to buy again.
- 429 and 503: wait for Retry-After seconds, then send the same request again.
- Errors are {"error":"<phrase>"}.
`

const SIMULATED = `This service runs on a simulator: no real money moves. Instead of a wallet,
POST /simulator/pay {"bolt11":"…"} pays an invoice and answers {"preimage","paymentHash"}.
`

const SAVING = `## Saving what you bought

You can repeat the answer until you first use one of its tokens, for at most 24 hours. Save it before
anything else. Tokens are secrets: never put them into URLs, logs or shared places. Send them as
Authorization: Bearer <token>. A lost token cannot be recovered.
`

const FURTHER = `## More

- {base_url}/openapi.json: every operation, with prices
- {base_url}/api/catalog: plans, limits, prices, and whether the checkout is open
`
