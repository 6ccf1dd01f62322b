/** A whole server in this process, on a store of its own and a clock that the test owns. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { pino } from 'pino'
import { createMayfly, type Mayfly } from '../../src/client/index.ts'
import { readConfig } from '../../src/config.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { type ServeOptions, type Server, serve } from '../../src/serve.ts'

export type TestClock = Clock & { advance(ms: number): void }

/** Runs with the real time until it is moved. */
export function testClock(): TestClock {
  let offset = 0
  return {
    now: () => Date.now() + offset,
    advance(ms) {
      offset += ms
    },
  }
}

export type TestServer = {
  url: string
  file: string
  clock: TestClock
  mayfly: Mayfly
  /** What the server logged, a line each. */
  logged: string[]
  /** Pays an invoice through the simulator; the preimage. */
  pay(bolt11: string): Promise<string>
  stop(): Promise<void>
  /** Stops, and starts again on the same store. */
  restart(): Promise<void>
}

/** Stopped and swept away when the test ends. */
export async function startServer(
  t: Pick<TestContext, 'after'>,
  environment: Record<string, string> = {},
  options: Omit<ServeOptions, 'clock'> = {},
): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-'))
  const file = join(folder, 'mayfly.db')
  const clock = testClock()
  const logged: string[] = []
  let server: Server | null = await start()

  async function start(): Promise<Server> {
    const config = readConfig({
      MAYFLY_PORT: '0',
      // A test that is about a limit switches it on.
      MAYFLY_RATE_LIMITS: 'off',
      MAYFLY_DATABASE_URL: `sqlite:${file}`,
      ...environment,
    })
    const log = pino({ level: config.logLevel, base: null }, { write: (line) => logged.push(line) })
    return serve(config, log, { clock, ...options })
  }

  async function stop(): Promise<void> {
    await server?.stop()
    server = null
  }

  t.after(async () => {
    await stop()
    await rm(folder, { recursive: true, force: true })
  })

  const testServer: TestServer = {
    url: server.url,
    file,
    clock,
    logged,
    mayfly: createMayfly({ baseUrl: server.url }),
    async pay(bolt11) {
      const response = await fetch(`${testServer.url}/simulator/pay`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ bolt11 }),
      })
      if (response.status !== 200) throw new Error(`the simulator did not pay: ${response.status}`)
      const { preimage } = (await response.json()) as { preimage: string }
      return preimage
    },
    stop,
    async restart() {
      await stop()
      server = await start()
      testServer.url = server.url
      testServer.mayfly = createMayfly({ baseUrl: server.url })
    },
  }
  return testServer
}
