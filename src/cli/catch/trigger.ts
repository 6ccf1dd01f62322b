/** `mayfly catch trigger NAME`: sends a webhook to an inbox, as a sender of one's choice would sign it. */
import { randomBytes, randomUUID } from 'node:crypto'
import { base64, chunksOf, concat, hex, utf8 } from '../../lib/bytes.ts'
import { mac } from '../../protocol/signatures/mac.ts'
import { SCHEMES } from '../../protocol/signatures/schemes.ts'
import { inboxAddress } from '../addresses.ts'
import { client } from '../cli.ts'
import { EXIT, misuse } from '../exit.ts'
import { goesWith, secretFrom } from '../options.ts'
import { harmless } from '../text.ts'
import { loadCatch } from '../vault/saved.ts'

type At = { seconds: number; id: string }

type Sample = {
  makeSecret(): string
  body(at: At): object
  /** What is signed in front of the body. */
  before?(at: At): string
  headers(signature: Uint8Array, at: At): Record<string, string>
  /** The key in a secret that is not used as it is, or null. */
  keyOf?(secret: string): Uint8Array<ArrayBuffer> | null
}

/** A small event of each sender, in the shape of its documentation. */
export const SAMPLES = {
  github: {
    makeSecret: () => randomBytes(20).toString('hex'),
    body: () => ({
      action: 'opened',
      issue: { number: 1, title: 'A sample of mayfly catch trigger', state: 'open' },
      repository: { full_name: 'octocat/hello-world' },
      sender: { login: 'octocat' },
    }),
    headers: (signature, { id }) => ({
      'user-agent': 'GitHub-Hookshot/sample',
      'x-github-event': 'issues',
      'x-github-delivery': id,
      'x-hub-signature-256': `sha256=${hex(signature)}`,
    }),
  },
  stripe: {
    makeSecret: () => `whsec_${randomBytes(24).toString('hex')}`,
    body: ({ seconds, id }) => ({
      id: `evt_${id.replaceAll('-', '').slice(0, 24)}`,
      object: 'event',
      created: seconds,
      livemode: false,
      type: 'invoice.paid',
      data: { object: { id: 'in_sample', object: 'invoice', amount_paid: 1000, currency: 'usd' } },
    }),
    before: ({ seconds }) => `${seconds}.`,
    headers: (signature, { seconds }) => ({
      'user-agent': 'Stripe/1.0 (sample)',
      'stripe-signature': `t=${seconds},v1=${hex(signature)}`,
    }),
  },
  slack: {
    makeSecret: () => randomBytes(16).toString('hex'),
    body: ({ seconds }) => ({
      type: 'event_callback',
      team_id: 'T061EG9R6',
      event_id: 'Ev0SAMPLE',
      event_time: seconds,
      event: { type: 'app_mention', user: 'U061F7AUR', channel: 'C0LAN2Q65', text: 'a sample' },
    }),
    before: ({ seconds }) => `v0:${seconds}:`,
    headers: (signature, { seconds }) => ({
      'user-agent': 'Slackbot 1.0 (sample)',
      'x-slack-signature': `v0=${hex(signature)}`,
      'x-slack-request-timestamp': String(seconds),
    }),
  },
  shopify: {
    makeSecret: () => `shpss_${randomBytes(16).toString('hex')}`,
    body: () => ({ id: 820982911946154500, email: 'jon@example.com', total_price: '10.00' }),
    headers: (signature, { id }) => ({
      'user-agent': 'Shopify-Captain-Hook (sample)',
      'x-shopify-topic': 'orders/create',
      'x-shopify-shop-domain': 'sample.myshopify.com',
      'x-shopify-webhook-id': id,
      'x-shopify-hmac-sha256': base64(signature),
    }),
  },
  standard: {
    makeSecret: () => `whsec_${randomBytes(24).toString('base64')}`,
    body: ({ seconds, id }) => ({
      type: 'user.created',
      timestamp: new Date(seconds * 1000).toISOString(),
      data: { id, name: 'A sample' },
    }),
    before: ({ seconds, id }) => `msg_${id}.${seconds}.`,
    headers: (signature, { seconds, id }) => ({
      'webhook-id': `msg_${id}`,
      'webhook-timestamp': String(seconds),
      'webhook-signature': `v1,${base64(signature)}`,
    }),
    keyOf: (secret) => SCHEMES['standard-webhooks'].keyOf?.(secret) ?? null,
  },
} satisfies Record<string, Sample>

type Sender = keyof typeof SAMPLES

export const addCatchTrigger = client({
  command: 'trigger',
  says: 'send a webhook to an inbox, to try what listens to it; it counts as a request',
  takes: {
    '<name>': 'the inbox',
    '--as <sender>': ['a signed sample of this sender', Object.keys(SAMPLES) as Sender[]],
    '--secret-file <file>': 'with --as: the secret, or - for stdin; by default one is made',
    '--data <json>': 'its body',
  },
  examples: [
    `mayfly catch trigger hooks --data '{"action":"opened"}'`,
    'mayfly catch trigger hooks --as github',
    'mayfly catch trigger hooks --as stripe --secret-file stripe-secret',
  ],
  notes: `
With --as, a handler behind \`mayfly catch listen --forward\` can be tried before the sender is connected.
`,
  async run(cli, { name, data, as, secretFile }) {
    goesWith('--as', as !== undefined, { '--secret-file': secretFile })
    const saved = loadCatch(cli, name)
    const given =
      as === undefined || secretFile === undefined
        ? null
        : await secretFrom(cli, secretFile, 'The secret of the sender: ')
    const sample = as && (await sampleOf(as, { data, secret: given, now: cli.now() }))
    const { headers, body } = sample ?? {
      headers: { authorization: `Bearer ${saved.capability.ingestToken}` },
      body: data ?? '{"hello":"from mayfly"}',
    }
    const answer = await cli.traced(fetch)(inboxAddress(saved), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      signal: cli.signal,
      // What is signed goes to the inbox, and nowhere else.
      redirect: 'manual',
    })
    const text = await beginningOf(answer)
    const made = sample && given === null ? { secret: sample.secret } : {}
    const isStored = answer.ok
    cli.answer(
      { name, sent: isStored, status: answer.status, answer: text, ...made },
      [
        isStored
          ? 'Sent. '
          : `The inbox answered ${answer.status}${text && `: ${harmless(text)}`}. `,
        `To see it: mayfly catch show ${name}\n`,
        'secret' in made ? `It is signed with a secret made for it: ${made.secret}\n` : '',
      ].join(''),
    )
    return isStored ? EXIT.ok : EXIT.failed
  },
})

/** How much of an answer is shown, which may have no end. */
const SHOWN_CHARS = 4096

async function beginningOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const part of chunksOf(body)) {
    text += decoder.decode(part, { stream: true })
    if (text.length >= SHOWN_CHARS) break
  }
  return text.slice(0, SHOWN_CHARS)
}

/** A sample as its sender would send it at this time. @throws CliError for a secret that is none. */
export async function sampleOf(
  sender: Sender,
  { data, secret, now }: { data?: string | undefined; secret: string | null; now: number },
) {
  const sample: Sample = SAMPLES[sender]
  const at = { seconds: Math.floor(now / 1000), id: randomUUID() }
  const used = secret ?? sample.makeSecret()
  const key = sample.keyOf ? sample.keyOf(used) : utf8(used)
  if (!key?.length) throw misuse(`This is no secret of ${sender}.`)
  const body = data ?? JSON.stringify(sample.body(at))
  const signature = await mac(concat(utf8(sample.before?.(at) ?? ''), utf8(body)), key)
  return { secret: used, body, headers: sample.headers(signature, at) }
}
