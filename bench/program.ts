/** The programs under load. Each is a process, which the bench starts and ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createMayfly } from '../src/client/index.ts'
import { cpuMsOf, writtenBytesOf } from './cpu.ts'
import type { BenchStore, Engine } from './engine.ts'
import type { Inside } from './inside.ts'

export type Program = {
  url: string
  /** Resident memory in MiB. 0 after the program has ended. */
  memoryMib(): number
  /** CPU time until now, in milliseconds. */
  cpuMs(): number
  /** Bytes that it has made the kernel write to disks until now. */
  writtenBytes(): number
  /** How busy its threads are. Only if it is watched. */
  inside(): Promise<Inside>
  stop(): Promise<void>
}

export type MayflyProgram = Program & { store: BenchStore }

/** `checkout` is the folder of the program, if it is not this one. */
type Starting = { isWatched?: boolean; checkout?: string | undefined }

export const HERE = fileURLToPath(new URL('..', import.meta.url))

/** Makes a program tell how busy its threads are. */
const WATCH = ['--import', new URL('inside.ts', import.meta.url).href]
/** The arguments of `npm start`, for Node. */
export const SERVE = ['--max-semi-space-size=8', 'bin/mayfly.mjs', 'serve']

/** Starts the service on a new store, which is removed when it stops. */
export async function startMayfly(
  engine: Engine,
  environment: Record<string, string> = {},
  starting: Starting = {},
): Promise<MayflyProgram> {
  return onOwnStore(engine, (store) => startMayflyOn(store, environment, starting))
}

/** Starts the service on an existing store, with limits for any load. The store stays when it stops. */
export async function startMayflyOn(
  store: BenchStore,
  environment: Record<string, string> = {},
  { isWatched = false, checkout }: Starting = {},
): Promise<MayflyProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-bench-'))
  const catalog = join(folder, 'plans.json')
  await writeFile(
    catalog,
    JSON.stringify({
      catch: { long: { requestLimit: 1e9, storageLimitBytes: 1e12, maxBytesPerRequest: 1048576 } },
      pulse: { long: { heartbeatLimit: 1e9 } },
    }),
  )
  const program = await start(
    isWatched ? [...WATCH, ...SERVE] : SERVE,
    {
      MAYFLY_PORT: '0',
      MAYFLY_RATE_LIMITS: 'off',
      MAYFLY_CATALOG: catalog,
      // A thread that is started through the cache does not load what `--import` names.
      ...(isWatched ? { NODE_DISABLE_COMPILE_CACHE: '1' } : {}),
      ...store.environment,
      ...environment,
    },
    checkout,
  )
  return {
    ...program,
    store,
    async stop() {
      await program.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Starts the service with its default limits and plans, on a new store, which is removed when it stops. */
export async function startMayflyAsItComes(
  engine: Engine,
  environment: Record<string, string> = {},
): Promise<MayflyProgram> {
  return onOwnStore(engine, (store) =>
    start(SERVE, { MAYFLY_PORT: '0', ...store.environment, ...environment }),
  )
}

async function onOwnStore(
  engine: Engine,
  startOn: (store: BenchStore) => Promise<Program>,
): Promise<MayflyProgram> {
  const store = await engine.newStore()
  const program = await startOn(store)
  return {
    ...program,
    store,
    async stop() {
      await program.stop()
      await store.remove()
    },
  }
}

/** Starts the same framework with the same kind of routes and no storage, for comparison. */
export function startBare(): Promise<Program> {
  return start(['bench/bare.ts'], {})
}

export async function buyInbox(url: string): Promise<{ publicId: string; ownerToken: string }> {
  return createMayfly({ baseUrl: url }).buyCatch({ planId: 'long', onInvoice: payer(url) })
}

export async function buyMonitor(url: string): Promise<{ publicId: string; pingToken: string }> {
  return createMayfly({ baseUrl: url }).buyPulse({ planId: 'long', onInvoice: payer(url) })
}

function payer(url: string): (quote: { bolt11: string }) => Promise<unknown> {
  return ({ bolt11 }) =>
    fetch(`${url}/simulator/pay`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ bolt11 }),
    })
}

async function start(
  args: string[],
  environment: Record<string, string>,
  checkout = HERE,
): Promise<Program> {
  const child = spawn(process.execPath, args, {
    cwd: checkout,
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  })
  const url = await listening(child)
  return {
    url,
    memoryMib() {
      if (child.exitCode !== null || child.signalCode !== null) return 0
      return residentMib(child.pid ?? 0)
    },
    cpuMs: () => cpuMsOf(child.pid ?? 0),
    writtenBytes: () => writtenBytesOf(child.pid ?? 0),
    inside: () =>
      new Promise((resolve) => {
        child.once('message', (inside) => resolve(inside as Inside))
        child.send('inside')
      }),
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve()
        child.once('exit', () => resolve())
        child.kill('SIGTERM')
      }),
  }
}

export function residentMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024)
}

/** The URL that a program logs. npm writes lines of its own before. */
export function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error('the program ended before it listened')))
    if (!child.stdout) return reject(new Error('the program has no output'))
    createInterface(child.stdout).on('line', (line) => {
      if (!line.startsWith('{')) return
      const facts = JSON.parse(line) as { event?: string; url?: string }
      if (facts.event === 'listening' && facts.url) resolve(facts.url)
    })
  })
}
