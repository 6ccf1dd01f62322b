/** Both ways in to the tools, driven by three hosts each: one interface, so that one suite runs on all of them. */
import assert from 'node:assert/strict'
import { createMCPClient, type MCPTransport } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio'
import { parseJson } from '../../src/lib/json.ts'
import { BIN, ENVIRONMENT } from '../support/bin.ts'
import { WITH_WALLET } from '../support/command-line.ts'
import { hostInThread } from '../support/command-threads.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { connect, type Revision } from '../support/mcp.ts'
import { connectHost, type HostKind, IS_NIGHTLY } from '../support/mcp-host.ts'
import { startServer } from '../support/server.ts'

export type Answered = { isError: boolean; text: string; value: Record<string, unknown> }
type Listed = { name: string; inputSchema: object; outputSchema?: object }

type Kind = { way: 'local' | 'results' | 'meta'; client: Revision | HostKind | 'ai-sdk' }

export const KINDS: readonly Kind[] = [
  { way: 'local', client: 'client 2.4.0, 2026-07-28' },
  { way: 'local', client: 'sdk 1.32.2' },
  { way: 'local', client: 'ai-sdk' },
  { way: 'results', client: '2026-07-28' },
  { way: 'results', client: '2025-11-25' },
  { way: 'results', client: 'ai-sdk' },
  { way: 'meta', client: '2026-07-28' },
]

type Raw = {
  content?: { text?: string }[]
  structuredContent?: Record<string, unknown>
  _meta?: Record<string, unknown>
  isError?: boolean
}

export async function openHost(t: After, { way, client }: Kind) {
  const server = await startServer(t)
  const home = await temporaryFolder(t)
  const seen: string[] = []
  /** Of a host with a pipe: all that came through it. */
  let transcript: (() => string) | null = null
  let calls = 0
  const { list, ask } = await opened()

  async function opened(): Promise<{
    list(): Promise<Listed[]>
    ask(name: string, args: object, token?: string): Promise<Raw>
  }> {
    if (client === 'ai-sdk') return withAiSdk()
    if (way === 'local') {
      const environment = WITH_WALLET.environment
      const host = await connectHost(t, {
        kind: client as HostKind,
        home,
        url: server.url,
        environment,
      })
      transcript = host.transcript
      return {
        list: host.tools,
        async ask(name, args) {
          const { isError, text, value } = await host.call(name, args)
          return { isError, content: [{ text }], structuredContent: value }
        },
      }
    }
    const agent = await connect(t, server.url, {
      revision: client as Revision,
      query: way === 'meta' ? '?tokens=meta' : '',
    })
    return {
      list: agent.tools,
      ask: (name, args, token) => agent.call(name, args, token === undefined ? {} : { token }),
    }
  }

  async function withAiSdk() {
    const environment = {
      XDG_DATA_HOME: home,
      MAYFLY_URL: server.url,
      ...WITH_WALLET.environment,
    }
    const env = { ...ENVIRONMENT, ...environment }
    const host = await createMCPClient({
      transport:
        way === 'local'
          ? IS_NIGHTLY
            ? new StdioTransport({ command: process.execPath, args: [BIN, 'mcp'], env })
            : (hostInThread([], environment) as MCPTransport)
          : { type: 'http', url: `${server.url}/mcp` },
    })
    t.after(() => host.close())
    const tools = await host.tools()
    return {
      list: async () => (await host.listTools()).tools as Listed[],
      ask: async (name: string, args: object) =>
        (await tools[name]?.execute?.(
          args as never,
          { toolCallId: '1', messages: [] } as never,
        )) as Raw,
    }
  }

  async function call(
    name: string,
    { token, ...args }: Record<string, unknown> = {},
  ): Promise<Answered> {
    calls++
    const isBeside = way === 'meta'
    const given = token === undefined || isBeside ? args : { ...args, token }
    const raw = await ask(name, given, isBeside ? (token as string | undefined) : undefined)
    seen.push(JSON.stringify([raw.content, raw.structuredContent]))
    const text = (raw.content ?? []).map((part) => part.text ?? '').join('')
    const meta = raw._meta ?? {}
    return {
      isError: raw.isError === true,
      text,
      value: { ...raw.structuredContent, ...(way === 'meta' ? meta : {}) },
    }
  }

  return {
    server,
    /** The folder of the user, for the local way in. */
    home,
    tools: list,
    call,
    /** How many calls there were, besides those that pay. */
    calls: () => calls,
    /** All that the model behind this host may have seen. */
    seen: () => seen.join('\n'),
    /** That, or where it can be told all that came to the host. */
    transcript: () => transcript?.() ?? seen.join('\n'),
    /** Buys under a name. What names it in other calls, with the token of this kind where a host passes tokens on. */
    async buy(
      tool: string,
      name: string,
      args: object = {},
    ): Promise<(kind?: string) => Record<string, unknown>> {
      if (way === 'local') {
        const { value, text } = await call(tool, { planId: 'spark', name, ...args })
        assert.equal(value.state, 'settled', text)
        return () => ({ name })
      }
      const asked = await call(tool, { planId: 'spark', ...args })
      const { quote, purchaseId } = asked.value as {
        quote: { orderId: string; bolt11: string }
        purchaseId: string
      }
      assert.ok(quote, asked.text)
      await server.pay(quote.bolt11)
      const { value, text } = await call('check_order', { orderId: quote.orderId, purchaseId })
      assert.equal(value.state, 'settled', text)
      const bought = value.bought as Record<string, string>
      const tokens = way === 'meta' ? (value['org.mayfly/capability'] as typeof bought) : bought
      return (kind = 'owner') => ({ publicId: bought.publicId, token: tokens[`${kind}Token`] })
    },
  }
}

/** The JSON that a reading tool says. */
export function readIn({ isError, text, value }: Answered) {
  assert.equal(isError, false, text)
  assert.deepEqual(
    Object.keys(value).filter((name) => !name.includes('/')),
    [],
    'it is said once',
  )
  const read = parseJson(text) as {
    webhooks: Record<string, unknown>[]
    webhook: Record<string, unknown>
    after: number
    reason: string
    notice: string
    content: { untrustedText: string }
    ciphertextBase64: string
  }
  assert.ok(read, text)
  return read
}
