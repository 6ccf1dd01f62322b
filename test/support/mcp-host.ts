/** Hosts of `mayfly mcp`: the official clients of both generations, each with a process or a thread of its own. */
import assert from 'node:assert/strict'
import { Client, type Transport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { BIN, ENVIRONMENT } from './bin.ts'
import { oneDay, WITH_WALLET } from './command-line.ts'
import { hostInThread } from './command-threads.ts'
import { type After, temporaryFolder } from './folder.ts'
import { startServer, type TestServer } from './server.ts'

export type HostKind = 'client 2.4.0, 2026-07-28' | 'client 2.4.0, 2025-11-25' | 'sdk 1.32.2'

const ALL: readonly HostKind[] = [
  'client 2.4.0, 2026-07-28',
  'client 2.4.0, 2025-11-25',
  'sdk 1.32.2',
]
export const IS_NIGHTLY = process.env.MAYFLY_TEST_NIGHTLY === '1'
/** The newest for each commit. */
export const HOSTS = IS_NIGHTLY ? ALL : ALL.slice(0, 1)

export type ToolResult = {
  isError: boolean
  text: string
  /** The structured content. */
  value: Record<string, unknown>
}

export type Choice = 'accept' | 'decline' | 'cancel'

type CallOptions = {
  signal?: AbortSignal
  onprogress?: (progress: { progress: number; message?: string | undefined }) => void
}

export type HostOptions = {
  kind?: HostKind
  /** The user's data folder is `<home>/mayfly`. */
  home: string
  url: string
  environment?: Record<string, string>
  args?: string[]
  /** The program, if it is not the one of the sources. */
  bin?: string
  /** It is killed, or another host of this user runs beside it. Each night all have processes. */
  hasProcess?: boolean
  /** How the user answers questions. Without it, this host cannot ask. */
  answer?: (message: string) => Choice
}

type NewHost = Partial<Omit<HostOptions, 'answer' | 'url'>> & {
  server?: TestServer
  /** How the user answers one question after the other; the last answer stays. Without any, this host cannot ask. */
  answers?: Choice[]
}

/** A host of a new user, whose wallet pays on the simulator. Default: at a service of its own. */
export async function aHost(t: After, { server, answers, ...options }: NewHost = {}) {
  const service = server ?? (await startServer(t))
  const home = options.home ?? (await temporaryFolder(t))
  const questions: string[] = []
  const answer = (question: string): Choice =>
    answers?.[questions.push(question) - 1] ?? answers?.at(-1) ?? 'cancel'
  const host = await connectHost(t, {
    url: service.url,
    environment: WITH_WALLET.environment,
    ...(answers && { answer }),
    ...options,
    home,
  })
  return { ...service, server: service, home, host, questions }
}

/** Connects a host, which ends with the test. */
export async function connectHost(t: After, options: HostOptions) {
  const { kind = 'client 2.4.0, 2026-07-28', home, url, environment, answer } = options
  const { args = [], bin = BIN } = options
  const hasProcess = (options.hasProcess ?? IS_NIGHTLY) || options.bin !== undefined
  const params = {
    command: process.execPath,
    args: [bin, 'mcp', ...args],
    env: { ...ENVIRONMENT, XDG_DATA_HOME: home, MAYFLY_URL: url, ...environment },
    stderr: 'pipe' as const,
  }
  await oneDay()
  let received = ''
  let err = ''
  const capabilities = answer ? { elicitation: {} } : {}
  const connected =
    kind === 'sdk 1.32.2' ? await connectOld() : await connectNew(kind.endsWith('2026-07-28'))
  t.after(() => connected.client.close())

  async function connectNew(isModern: boolean) {
    const client = new Client(
      { name: 'host', version: '1' },
      {
        capabilities,
        versionNegotiation: { mode: isModern ? { pin: '2026-07-28' } : 'legacy' },
      },
    )
    if (answer) {
      client.setRequestHandler('elicitation/create', async ({ params }) => elicited(params.message))
    }
    const transport = hasProcess ? new StdioClientTransport(params) : inThread()
    hear(transport)
    await client.connect(transport)
    return { client, transport }
  }

  async function connectOld() {
    const client = new OldClient({ name: 'host', version: '1' }, { capabilities })
    if (answer) {
      client.setRequestHandler(ElicitRequestSchema, async ({ params }) => elicited(params.message))
    }
    const transport = hasProcess ? new OldTransport(params) : inThread()
    hear(transport)
    await client.connect(transport as OldTransport)
    return { client, transport }
  }

  function elicited(message: string) {
    const action = answer?.(message) ?? 'cancel'
    return action === 'accept' ? { action, content: {} } : { action }
  }

  function inThread() {
    const environmentOfUser = { XDG_DATA_HOME: home, MAYFLY_URL: url, ...environment }
    return hostInThread(args, environmentOfUser, (text) => {
      err += text
    })
  }

  function hear(transport: StdioClientTransport | OldTransport | Transport): void {
    if (!('stderr' in transport)) return
    transport.stderr?.on('data', (chunk: Buffer) => {
      err += chunk.toString('utf8')
    })
  }

  const { client, transport } = connected
  const listening = transport.onmessage as ((message: unknown) => void) | undefined
  transport.onmessage = (message: unknown) => {
    received += `${JSON.stringify(message)}\n`
    listening?.(message)
  }
  return {
    /** Of its process, if it has one. */
    get pid(): number {
      if (transport instanceof StdioClientTransport || transport instanceof OldTransport) {
        return transport.pid ?? assert.fail('it has ended')
      }
      return assert.fail('this host is in a thread')
    },
    instructions: client.getInstructions() ?? '',
    tools: async (): Promise<{ name: string; inputSchema: object }[]> =>
      (await client.listTools()).tools,
    async call(
      name: string,
      asked: object = {},
      { signal, onprogress }: CallOptions = {},
    ): Promise<ToolResult> {
      const request = { name, arguments: asked as Record<string, unknown> }
      const requestOptions = {
        timeout: 120_000,
        ...(signal ? { signal } : {}),
        ...(onprogress ? { onprogress } : {}),
      }
      const result =
        client instanceof Client
          ? await client.callTool(request, requestOptions)
          : await client.callTool(request, undefined, requestOptions)
      const [content] = result.content as { text?: string }[]
      return {
        isError: result.isError === true,
        text: content?.text ?? '',
        value: (result.structuredContent ?? {}) as Record<string, unknown>,
      }
    },
    /** Everything that came from the process so far, on both streams. */
    transcript: () => received + err,
    /** What the process wrote to stderr. */
    err: () => err,
    close: () => client.close(),
  }
}
