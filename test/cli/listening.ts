/** An inbox with a command line of its own, and a user's server that its webhooks are forwarded to. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { fixedAddress, NOWHERE } from '../support/address.ts'
import type { CommandLine } from '../support/command-line.ts'
import type { After } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { serve } from '../support/serving.ts'
import { aUser } from '../support/user.ts'

export async function anInbox(t: After) {
  const { url, cli } = await aUser(t, { hooks: 'catch' })
  const { ingestUrl } = await cli.json(['show', 'hooks'])
  return { url, cli, ingest: String(ingestUrl), receiver: await startReceiver(t) }
}

export async function sendAll(ingest: string, count: number): Promise<void> {
  for (let i = 1; i <= count; i++) {
    const { status } = await fetch(ingest, { method: 'POST', body: `webhook ${i}` })
    assert.equal(status, 204)
  }
}

export async function listenOnce(cli: CommandLine, to: string): Promise<Record<string, unknown>[]> {
  const { code, out, err } = await cli.run([
    ...['catch', 'listen', 'hooks', '--since', 'start', '--forward', to, '--once'],
  ])
  const told = linesOf(out)
  const status = told.at(-1)?.status ?? null
  assert.equal(code, status !== null && Number(status) < 400 ? 0 : 1, err)
  return told
}

/** What a listener has told, line by line. */
export const linesOf = (out: string): Record<string, unknown>[] =>
  out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

type Got = { method: string; url: string; headers: IncomingHttpHeaders; body: Buffer }

/** A way to the service that can be cut: its connections end, and new ones lead nowhere. */
export async function aProxy(t: After, target: string) {
  const service = Number(new URL(target).port)
  const address = await fixedAddress(t, service)
  const url = `http://127.0.0.1:${address.port}`
  return { url, cut: () => address.moveTo(NOWHERE), mend: () => address.moveTo(service) }
}

/** A user's own server, which keeps what it is sent. */
async function startReceiver(t: After) {
  const got: Got[] = []
  const receiver = {
    url: '',
    got,
    bodies: () => got.map(({ body }) => body.toString()),
    says: 'ok',
    answer: (_got: Got): number | 'hang up' | 'nothing yet' => 200,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
    async reopen() {
      server.listen(Number(new URL(receiver.url).port), '127.0.0.1')
      await once(server, 'listening')
    },
  }
  const server = createServer(async (request, response) => {
    const body = await buffer(request).catch(() => null)
    // Its sender was killed in the middle of it: a request that never was whole.
    if (body === null) return
    const { method = '', url = '', headers } = request
    const one = { method, url, headers, body }
    got.push(one)
    const answer = receiver.answer(one)
    if (answer === 'hang up') response.destroy()
    else if (answer !== 'nothing yet') response.writeHead(answer).end(receiver.says)
  })
  // Nobody else gets it while the receiver is closed.
  receiver.url = await serve(t, server, await freePort())
  return receiver
}
