/** The official clients of MCP, of both revisions, at a running service. */
import assert from 'node:assert/strict'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { objectIn } from '../../src/lib/json.ts'
import { CAPABILITY_META, TOKEN_META } from '../../src/tools/tool.ts'
import type { After } from './folder.ts'

export type Revision = '2026-07-28' | '2025-11-25'
export const REVISIONS: readonly Revision[] = ['2026-07-28', '2025-11-25']

export type Result = {
  content: { type: string; text: string }[]
  structuredContent?: Record<string, unknown>
  _meta?: Record<string, unknown>
  isError?: boolean
}

export type Agent = Awaited<ReturnType<typeof connect>>

type CallOptions = {
  meta?: Record<string, unknown>
  token?: string
  onProgress?: (message: string | undefined) => void
  signal?: AbortSignal
}

/** @param options the query and headers of the connection. */
export async function connect(
  t: After,
  url: string,
  {
    revision = '2026-07-28' as Revision,
    query = '?tokens=meta',
    headers = {} as Record<string, string>,
  } = {},
) {
  const address = new URL(`/mcp${query}`, url)
  const info = { name: 'test', version: '1' }
  const options = { requestInit: { headers } }
  const client =
    revision === '2026-07-28'
      ? new Client(info, { versionNegotiation: { mode: { pin: revision } } })
      : new Client2025(info)
  if (client instanceof Client) {
    await client.connect(new StreamableHTTPClientTransport(address, options))
    assert.equal(client.getNegotiatedProtocolVersion(), revision)
  } else {
    // biome-ignore lint/suspicious/noExplicitAny: its types differ from those of its interface.
    await client.connect(new Transport2025(address, options) as any)
  }
  const close = (): Promise<void> => client.close()
  t.after(close)
  const seen: string[] = []
  return {
    /** All that the model behind this client may have seen. */
    seen,
    close,
    async call(
      name: string,
      given: object = {},
      { meta = {}, token, onProgress, signal }: CallOptions = {},
    ): Promise<Result> {
      const params = {
        name,
        arguments: { ...given },
        _meta: { ...meta, ...(token === undefined ? {} : { [TOKEN_META]: token }) },
      }
      const asked = {
        ...(onProgress
          ? { onprogress: ({ message }: { message?: string | undefined }) => onProgress(message) }
          : {}),
        ...(signal ? { signal } : {}),
      }
      try {
        const result = (
          client instanceof Client
            ? await client.callTool(params, asked)
            : await client.callTool(params, undefined, asked)
        ) as Result
        const { content, structuredContent } = result
        seen.push(JSON.stringify({ content, structuredContent }))
        return result
      } catch (error) {
        seen.push(JSON.stringify([String(error), (error as { data?: unknown }).data]))
        throw error
      }
    },
    tools: async () =>
      (await client.listTools()).tools as {
        name: string
        inputSchema: object
        outputSchema?: object
      }[],
  }
}

type Purchase = {
  purchaseId: string
  quote: { orderId: string; bolt11: string; amountSats: number; paymentHash: string }
}

/** What an unpaid purchase asks for. */
export function purchaseIn(result: Result): Purchase {
  assert.equal(result.structuredContent?.state, 'payment required', JSON.stringify(result.content))
  return result.structuredContent as Purchase
}

type Challenge = Record<string, unknown> & { request: { methodDetails: { invoice: string } } }

/** The challenge for a client that pays by itself. */
export function challengeIn({ _meta }: Result): Challenge {
  const required = _meta?.['org.paymentauth/payment-required'] as { challenges: Challenge[] }
  assert.equal(required.challenges.length, 1)
  return required.challenges[0] as Challenge
}

/** The credential of a payment, as a client puts it into `_meta`. */
export const credentialOf = (challenge: object, preimage: string): Record<string, unknown> => ({
  'org.paymentauth/credential': { challenge, payload: { preimage } },
})

/** What was bought, with its tokens. */
export function capabilityIn<Capability>(result: Result): Capability {
  assert.equal(result.structuredContent?.state, 'settled', JSON.stringify(result.content))
  const capability = result._meta?.[CAPABILITY_META]
  assert.ok(capability, 'the result has no capability')
  return capability as Capability
}

/** The JSON that a reading tool says, in its text alone. */
export function readIn({ isError, content, structuredContent }: Result): Record<string, unknown> {
  const text = content.map((part) => part.text).join('')
  assert.notEqual(isError, true, text)
  assert.equal(structuredContent, undefined)
  return objectIn(text) ?? {}
}

/** The text of a refusal. */
export function refusalIn({ isError, content, structuredContent }: Result): string {
  assert.equal(isError, true, JSON.stringify(content))
  assert.equal(structuredContent, undefined)
  return content.map(({ text }) => text).join('\n')
}

/** Sends one message as it is, with what both revisions want of its headers. */
export async function post(
  url: string,
  body: BodyInit,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; text: string; json: Record<string, unknown> }> {
  const answer = await fetch(new URL('/mcp', url), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body,
  })
  const text = await answer.text()
  const data = /^data: (\{.*)$/m.exec(text)?.[1] ?? text
  return { status: answer.status, headers: answer.headers, text, json: objectIn(data) ?? {} }
}

export const message = (method: string, params: object = {}): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
