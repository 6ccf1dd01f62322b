/** Buys and uses all three products with the client that @hey-api/openapi-ts generates. */

import { client } from './hey/client.gen'
import {
  buyCatch,
  buyPulse,
  buyWhisper,
  getMonitor,
  listEvents,
  payWithSimulator,
  pingMonitor,
  pollOrder,
  readWhisper,
  sendToInbox,
} from './hey/index'

declare const process: { argv: string[] }

client.setConfig({ baseUrl: process.argv[2] ?? '' })

const key = () => ({ 'idempotency-key': crypto.randomUUID() })

/** What a 402 of the native flow has. A challenge has a macaroon, and would have come first. */
async function paid(quote: object | undefined) {
  if (!quote || !('orderId' in quote) || 'macaroon' in quote) throw new Error('no quote')
  const { bolt11, orderId } = quote as { bolt11: string; orderId: string }
  await payWithSimulator({ body: { bolt11 }, throwOnError: true })
  const { data } = await pollOrder({ path: { orderId }, throwOnError: true })
  return data.resource
}

async function main(): Promise<void> {
  const catchQuote = await buyCatch({ body: { planId: 'spark' }, headers: key() })
  const inbox = await paid(catchQuote.error)
  if (inbox.product !== 'catch') throw new Error('no inbox')
  const path = { publicId: inbox.publicId }
  await sendToInbox({ path, body: { type: 'paid' }, auth: inbox.ingestToken, throwOnError: true })
  const { data: page } = await listEvents({ path, auth: inbox.ownerToken, throwOnError: true })
  if (page.events[0]?.body !== '{"type":"paid"}') throw new Error('no event')

  const bytes = new Blob([new Uint8Array(40).fill(7)])
  const headers = { ...key(), 'x-whisper-plan': 'spark' as const }
  const whisper = await paid((await buyWhisper({ body: bytes, headers })).error)
  if (whisper.product !== 'whisper') throw new Error('no whisper')
  const { data: read } = await readWhisper({
    path: { publicId: whisper.publicId },
    auth: whisper.readToken,
    throwOnError: true,
  })
  if (read.size !== 40) throw new Error('another ciphertext')

  const monitor = await paid((await buyPulse({ body: { planId: 'spark' }, headers: key() })).error)
  if (monitor.product !== 'pulse') throw new Error('no monitor')
  const of = { path: { publicId: monitor.publicId }, throwOnError: true as const }
  await pingMonitor({ ...of, auth: monitor.pingToken })
  const { data: status } = await getMonitor({ ...of, auth: monitor.ownerToken })
  if (status.state !== 'operational') throw new Error('no ping')
}

void main()
