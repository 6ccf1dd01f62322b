/** The processes of the service: started, stopped and killed, and asked over a network that loses answers. */
import { type DestinationStream, type Logger, pino } from 'pino'
import { type Reloaded, readConfig } from '../../../src/service/config.ts'
import { type Server, serve } from '../../../src/service/serve.ts'
import { createMachineClock } from './clocks.ts'
import { connect, type Response } from './connection.ts'
import { type Process, world } from './world.ts'

/** As they are in the world outside: after a loss, a client asks again. */
export type Ask = {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  target: string
  headers?: Record<string, string>
  body?: string | Uint8Array | undefined
  /** The client's address. */
  from?: string
}

export type Answer = Response

/** How long a client waits for an answer. */
const CLIENT_TIMEOUT_MS = 8_000

export type Service = ReturnType<typeof createService>

export function createService() {
  const servers = new Map<Process, Server>()
  let started = 0

  const service = {
    processes: [] as Process[],
    /** How often a request or an answer is lost, from 0 to 1. */
    losing: 0,
    /** How far the clocks of processes that start are off, in milliseconds. */
    clocksWithinMs: 0,

    /** Starts a process. Resolves to null if it was killed before it listened. */
    async start(environment: Record<string, string>, catalog: unknown): Promise<Process | null> {
      const { scheduler, logged } = world()
      const process: Process = {
        name: `p${started++}`,
        isDead: false,
        clock: createMachineClock(scheduler.random, service.clocksWithinMs),
        app: null,
        onDeath: new Set(),
      }
      const config = { ...readConfig(environment), catalog }
      const sink: DestinationStream = { write: (line) => void logged.push(line) }
      const log: Logger = pino({ level: 'info', base: null, timestamp: false }, sink)
      const clock = { now: () => scheduler.wallNow(process.clock), monotonic: scheduler.elapsed }
      return new Promise((resolve, reject) => {
        process.onDeath.add(() => resolve(null))
        scheduler.as(process, () =>
          serve(config, log, { clock }).then((server) => {
            servers.set(process, server)
            service.processes.push(process)
            resolve(process)
          }, reject),
        )
      })
    },

    /** Sends SIGHUP to a process: its files say this now, or cannot be read. */
    reload(process: Process, catalog: unknown): void {
      const read = (): Reloaded => {
        if (catalog === null) throw new SyntaxError('the file is half written')
        return { catalog, rateLimits: 'off' }
      }
      world().scheduler.as(process, () => servers.get(process)?.reload(read))
    },

    async stop(process: Process): Promise<void> {
      service.processes = service.processes.filter((each) => each !== process)
      const server = servers.get(process)
      if (!server) return
      await new Promise<void>((resolve) => {
        process.onDeath.add(resolve)
        // A supervisor kills what does not stop.
        world().scheduler.after(30_000, () => service.kill(process), null)
        world().scheduler.as(process, () => server.stop().then(resolve, resolve))
      })
      service.kill(process)
    },

    kill(process: Process): void {
      if (process.isDead) return
      process.isDead = true
      process.app = null
      service.processes = service.processes.filter((each) => each !== process)
      servers.delete(process)
      for (const told of [...process.onDeath]) told()
      process.onDeath.clear()
      world().scheduler.forget(process)
    },

    /** An answer, or null if it was lost: the client cannot know whether it was asked. */
    ask({
      method = 'GET',
      target,
      headers = {},
      body,
      from = '203.0.113.7',
    }: Ask): Promise<Answer | null> {
      const { scheduler } = world()
      const { random } = scheduler
      const owner = scheduler.owner()
      return new Promise((resolve) => {
        const giveUp = scheduler.after(CLIENT_TIMEOUT_MS, () => resolve(null), owner)
        const done = (answer: Answer | null): void => {
          const take = (): void => {
            giveUp()
            resolve(answer)
          }
          scheduler.after(random.next() * 5, take, owner)
        }
        if (random.chance(service.losing)) return
        const arrive = (): void => {
          const process = service.processes.length > 0 ? random.pick(service.processes) : null
          if (!process?.app) {
            done(null)
            return
          }
          const { server } = process.app
          const reset = (): void => {
            connection.abandon()
            done(null)
          }
          process.onDeath.add(reset)
          const isAnswerLost = random.chance(service.losing)
          const settled = (answer: Answer | null): void => {
            process.onDeath.delete(reset)
            if (!process.isDead && !isAnswerLost) done(answer)
          }
          const connection = scheduler.as(process, () =>
            connect(server, { method, target, headers, body, from }, settled),
          )
        }
        scheduler.after(random.next() * 5, arrive, null)
      })
    },
  }
  return service
}
