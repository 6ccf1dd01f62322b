/** A whole server in this process, with a new store and a clock that the test controls. */
import { pino } from 'pino'
import { createMayfly } from '../../src/client/index.ts'
import { readConfig } from '../../src/service/config.ts'
import { type ServeOptions, type Server, serve } from '../../src/service/serve.ts'
import type { After } from './folder.ts'
import { payAt } from './payer.ts'
import { aMigratedDatabaseUrl, settingsFor } from './store.ts'

export type TestClock = ReturnType<typeof testClock>

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** After `advance`, turns come so often for so long: one work can begin another one. */
const HURRY = { everyMs: 25, forMs: 1_000 }
const machineInterval = setInterval

/**
 * A clock that runs with the real time until a test moves it. It is passed for the machine's clock, and in tests of one
 * room for the service's, which is never held.
 */
export function testClock() {
  let passed = 0
  let jumped = 0
  const turns = new Map<() => void, number>()

  function hurry(ms: number): void {
    // A test that mocks the timers decides itself when there is a turn.
    if (setInterval !== machineInterval) return
    const due = [...turns].filter(([, everyMs]) => everyMs <= ms).map(([turn]) => turn)
    const until = performance.now() + HURRY.forMs
    const timer = setInterval(() => {
      for (const turn of due) if (turns.has(turn)) turn()
      if (performance.now() < until && turns.size > 0) return
      clearInterval(timer)
    }, HURRY.everyMs)
    // What is still open when a server has stopped is the server's, and not this.
    timer.unref()
  }

  return {
    isHeld: () => false,
    hasGoneBack: () => false,
    now: () => Date.now() + passed + jumped,
    monotonic: () => performance.now() + passed,
    /** Lets this much time pass. */
    advance(ms: number): void {
      passed += ms
      hurry(ms)
    },
    /** Sets the wall clock forward or back, while no time passes. */
    jump(ms: number): void {
      jumped += ms
    },
    /** A timer of the machine. What has a turn in the time that `advance` lets pass has it soon. */
    timer(ms: number, turn: () => void) {
      const timer = setInterval(turn, ms)
      turns.set(turn, ms)
      return () => {
        clearInterval(timer)
        turns.delete(turn)
      }
    },
  }
}

export type TestServer = Awaited<ReturnType<typeof startServer>>

type Options = Omit<ServeOptions, 'clock'>

/** Starts a server. The end of the test stops it and removes its store. */
export async function startServer(
  t: After,
  environment: Record<string, string> = {},
  options: Options = {},
) {
  let server: Server | null = null
  // Set before the store's hook, so that the server stops before its store is removed.
  t.after(() => stop())
  const databaseUrl = await aMigratedDatabaseUrl(t)
  const clock = testClock()
  const logged: string[] = []
  server = await start()

  async function start(some = options): Promise<Server> {
    const config = readConfig({
      MAYFLY_PORT: '0',
      // Tests of limits switch them on.
      MAYFLY_RATE_LIMITS: 'off',
      // Tests are strangers of many addresses.
      MAYFLY_SIMULATOR: 'public',
      ...settingsFor(databaseUrl),
      ...environment,
    })
    const log = pino({ level: config.logLevel, base: null }, { write: (line) => logged.push(line) })
    return serve(config, log, { clock, timer: clock.timer, ...some })
  }

  async function stop(): Promise<void> {
    await server?.stop()
    server = null
  }

  const testServer = {
    url: server.url,
    /** The value of MAYFLY_DATABASE_URL for its store. */
    databaseUrl,
    /** The file of its store if the engine is SQLite. */
    file: databaseUrl.replace(/^sqlite:/, ''),
    /** The machine's. What time it is by the service says `now`. */
    clock,
    /** The service's own time. The machine's may be some milliseconds off, and so may the one of PostgreSQL. */
    now(): number {
      if (!server) throw new Error('a server that has stopped has no time')
      return server.clock.now()
    },
    /** Moves the clock well into a new minute, which no small correction of the clock leaves. Returns its start. */
    beginMinute(): number {
      clock.advance(MINUTE - (testServer.now() % MINUTE) + 1_000)
      const now = testServer.now()
      return now - (now % MINUTE)
    },
    /** Moves the clock to the next noon UTC, for a test that no midnight may interrupt. */
    awaitNoon: (): void => clock.advance(DAY + DAY / 2 - (testServer.now() % DAY)),
    /** The lines of the server's log. */
    logged,
    mayfly: createMayfly({ baseUrl: server.url }),
    /** Pays an invoice through the simulator. Returns the preimage. */
    pay: (bolt11: string): Promise<string> => payAt(testServer.url, bolt11),
    stop,
    /** Takes other plans and rates into use, as SIGHUP does. */
    reload: (read: Parameters<Server['reload']>[0]) => server?.reload(read),
    /** Lets the service's clock read the time. */
    beat: async () => server?.clock.beat(),
    /** Stops the server, and starts it again on the same store, with other options if they are given. */
    async restart(other?: Options): Promise<void> {
      await stop()
      server = await start(other)
      testServer.url = server.url
      testServer.mayfly = createMayfly({ baseUrl: server.url })
    },
  }
  return testServer
}
