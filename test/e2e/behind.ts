/**
 * The service behind nginx or Caddy, for each of which a suite runs. A proxy that is missing fails with the command
 * that installs it.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Agent, type Dispatcher, request, fetch as undiciFetch } from 'undici'
import { type CatchCapability, createMayfly, type Mayfly } from '../../src/client/index.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { payAt } from '../support/payer.ts'
import { freePort } from '../support/ports.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Front, missingProxy, type ProxyName, startFront } from './front.ts'

export type Ask = {
  method?: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  client?: Agent
  signal?: AbortSignal
}

export type Site = ReturnType<typeof siteOf>

/** Declares the tests of each proxy. `site` is there when they run. */
export function behindEach(declare: (name: ProxyName, site: () => Site) => void): void {
  for (const name of ['nginx', 'caddy'] as const) {
    const missing = missingProxy(name)
    if (missing) test(`${name} is installed`, () => assert.fail(missing))
    else suite(`the service behind ${name}`, () => declare(name, startSite(name)))
  }
}

function startSite(name: ProxyName): () => Site {
  const closing: (() => unknown)[] = []
  const suiteEnd: After = { after: (work) => closing.push(work) }
  let site: Site
  before(async () => {
    const [port, servicePort] = [await freePort(), await freePort()]
    // First, as after a boot: it must not give up on a service that is not there yet.
    const front = await startFront(suiteEnd, name, { port, servicePort })
    site = siteOf(front, await startService(suiteEnd, { url: front.url, servicePort }))
  })
  after(async () => {
    for (const close of closing.toReversed()) await close()
  })
  return () => site
}

function siteOf(front: Front, service: Awaited<ReturnType<typeof startService>>) {
  const client = front.client()
  const through = (dispatcher: Agent): typeof fetch =>
    ((url: string, init: RequestInit) =>
      undiciFetch(url, { ...init, dispatcher } as never)) as unknown as typeof fetch
  const sdk = (own: Agent): Mayfly => createMayfly({ baseUrl: front.url, fetch: through(own) })
  const mayfly = sdk(client)
  /** Sends a request through the proxy, with its path as it stands here. */
  const ask = (path: string, { client: own = client, ...options }: Ask = {}) =>
    // Not by a URL, which would be normalised.
    own.request({ origin: front.url, path, method: 'GET', ...options } as Dispatcher.RequestOptions)
  return {
    front,
    service,
    /** The SDK through the proxy. */
    mayfly,
    sdk,
    ask,
    fetch: through(client),
    anInbox: (planId: 'spark' | 'long' = 'spark') =>
      mayfly.buyCatch({ planId, onInvoice: ({ bolt11 }) => service.pay(bolt11) }),
    /** Sends a request to the inbox, and reads it as its owner. */
    async stored(inbox: CatchCapability, path: string, options: Ask) {
      const { statusCode, body } = await ask(`/c/${inbox.publicId}${path}`, options)
      await body.dump()
      assert.equal(statusCode, 204)
      const { events } = await mayfly.catch(inbox).page({ limit: 1 })
      assert.ok(events[0])
      return events[0]
    },
  }
}

/** The real program, which can be started again on its port. */
async function startService(t: After, { url, servicePort }: { url: string; servicePort: number }) {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const metricsPort = await freePort()
  const programs: Program[] = []
  const start = async (): Promise<Program> => {
    const program = await startProgram(t, file, {
      environment: {
        MAYFLY_PORT: String(servicePort),
        MAYFLY_BASE_URL: url,
        MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
        MAYFLY_METRICS_PORT: String(metricsPort),
        MAYFLY_RATE_LIMITS: 'off',
        MAYFLY_SIMULATOR: 'public',
      },
    })
    programs.push(program)
    return program
  }
  let program = await start()
  const stop = async (): Promise<void> => {
    program.signal('SIGTERM')
    await program.ended
  }
  return {
    port: servicePort,
    pay: (bolt11: string) => payAt(`http://127.0.0.1:${servicePort}`, bolt11),
    /** The streams and waits that the service holds open. */
    async open() {
      const { body } = await request(`http://127.0.0.1:${metricsPort}/metrics`)
      const lines = (await body.text()).matchAll(/^mayfly_open_streams\{.*\} (\d+)$/gm)
      return [...lines].reduce((sum, [, count]) => sum + Number(count), 0)
    },
    logged: (event: string) =>
      programs.flatMap(({ logged }) => logged.filter((line) => line.event === event)),
    stop,
    async restart() {
      await stop()
      program = await start()
    },
  }
}
