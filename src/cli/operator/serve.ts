/** `mayfly serve`: the service, in the foreground, until it is told to stop. */
import { existsSync, realpathSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { isatty } from 'node:tty'
import { prepareStore } from '../../db/open.ts'
import { placeOf } from '../../db/server-urls.ts'
import { codeOf } from '../../lib/errors.ts'
import {
  type Config,
  ConfigError,
  RELOADED,
  readConfig,
  readOptions,
} from '../../service/config.ts'
import type { Server } from '../../service/serve.ts'
import { CliError, EXIT, misuse } from '../exit.ts'
import { ofStore, operator } from './command.ts'
import { createLogOutput } from './log-output.ts'
import { REDACTED, withoutSecrets } from './log-redaction.ts'

/** By then the code of the first requests is compiled, too. Costs a moment at the first start only. */
const FLUSH_AFTER_MS = 3_000

export const addServe = operator({
  command: 'serve',
  says: 'start the service (docs/run/operate.md)',
  examples: ['mayfly serve', 'MAYFLY_PORT=9000 mayfly serve'],
  async run() {
    // On a full disk, or without the terminal, its sentences are lost, and the service goes on.
    process.stderr.on('error', () => undefined)
    // Signals are listened for before anything is started, so that every one has a listener.
    let server: Server | null = null
    let isReloadDue = false
    const reload = (): void => {
      if (server) server.reload(() => readOptions(RELOADED))
      // Followed once the service runs, because the files may have been read before they were changed.
      else isReloadDue = true
    }
    const closed = new Promise<true>((resolve) => {
      onHangUp((what) => (what === 'reload' ? reload() : resolve(true)))
    })
    const stop = Promise.race([signalled(), closed])
    server = await Promise.race([start(), stop.then(() => null)])
    if (server === null) {
      // A start may wait for others without end, and whatever it does may be killed.
      if (!(await stop)) process.stderr.write(STOPPED_EARLY)
      process.exit(EXIT.ok)
    }
    if (isReloadDue) reload()
    // A service may run until it is killed, and the next start needs what this one compiled.
    setTimeout(() => flushCompileCache(), FLUSH_AFTER_MS).unref()
    const isTerminalGone = await stop
    if (!isTerminalGone) process.stderr.write(STOPPING)
    void signalled().then(() => process.exit(EXIT.failed))
    await server.stop()
    // Only the second signal's listeners are left.
    process.exit(EXIT.ok)
  },
})

/**
 * SIGHUP: the operator asks for a reload, or the terminal of a service in the foreground was closed. It is listened for
 * from now on, so that none ends the process.
 * @param isTerminal whether a standard stream is one, which it is not any more after its terminal was closed.
 */
export function onHangUp(listener: (what: 'reload' | 'stop') => void, isTerminal = isatty): void {
  const terminals = [0, 1, 2].filter((stream) => isTerminal(stream))
  process.on('SIGHUP', () => {
    listener(terminals.every((stream) => isTerminal(stream)) ? 'reload' : 'stop')
  })
}

/** @throws CliError for what the operator can change. */
async function start(): Promise<Server> {
  try {
    const config = readConfig()
    const { databaseUrl } = config
    if (databaseUrl.kind === 'sqlite') await lockStore(databaseUrl.file)
    // The threads start while this one loads everything else.
    await prepareStore(config.databaseUrl)
    const [{ pino }, { serve }] = await Promise.all([
      import('pino'),
      import('../../service/serve.ts'),
    ])
    const output = createLogOutput()
    process.once('exit', output.flush)
    const log = pino(
      {
        level: config.logLevel,
        base: null,
        messageKey: 'message',
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (level) => ({ level }), log: withoutSecrets },
        redact: { paths: REDACTED, remove: true },
      },
      output,
    )
    const server = await serve(config, log)
    greet(config, server)
    return server
  } catch (error) {
    throw notStarted(error) ?? error
  }
}

/**
 * Two services on one file would each settle, alert and count as if it were alone. The lock ends with this
 * process, however that ends. Commands of the operator work beside it.
 */
async function lockStore(file: string): Promise<void> {
  const [{ takeLock }, { makeFolderOf }] = await Promise.all([
    import('./lock.ts'),
    import('../../db/folder.ts'),
  ])
  let lock: ReturnType<typeof takeLock>
  try {
    makeFolderOf(file)
    // A link to the file is the same store.
    lock = takeLock(`${existsSync(file) ? realpathSync(file) : file}.lock`)
  } catch {
    // Where no lock can be written, the store cannot be opened either, and says why.
    return
  }
  if (!('heldBy' in lock)) {
    process.once('exit', lock.release)
    return
  }
  const { heldBy, since } = lock
  throw new CliError(
    `Mayfly did not start. Process ${heldBy} runs on ${file} already${since === null ? '' : `, since ${since}`}. Stop it first, or set MAYFLY_DATABASE_URL to another file. Several instances need PostgreSQL (docs/run/postgresql.md).`,
  )
}

function greet(config: Config, { url }: Server): void {
  const lines = [
    `Mayfly listens on ${url}`,
    '',
    `  For people         ${url}/`,
    `  What is on sale    ${url}/api/catalog`,
    `  The interface      ${url}/openapi.json`,
    `  The store          ${shownStore(config)}`,
  ]
  if (config.lightningUrl.kind === 'simulator') {
    lines.push(
      '',
      'SIMULATOR: no real money moves. Invoices are paid by POST /simulator/pay.',
      'To sell for real, set MAYFLY_LIGHTNING_URL to your node (docs/run/nodes.md).',
    )
  }
  process.stderr.write(`${lines.join('\n')}\n\n`)
}

/** Host and database of a server: what else is in its URL may be a secret. */
function shownStore({ databaseUrl }: Config): string {
  if (databaseUrl.kind === 'sqlite') return databaseUrl.file
  const { servers, database } = placeOf(databaseUrl.url)
  return `PostgreSQL ${servers}/${database}`
}

/** What keeps the service from starting and is the operator's to change, as a sentence; else null. */
function notStarted(error: unknown): CliError | null {
  const known = error instanceof ConfigError ? misuse(error.message) : ofStore(error)
  const sentence = known?.message ?? ADDRESS_ERRORS[codeOf(error)]
  if (sentence === undefined) return null
  return new CliError(`Mayfly did not start. ${sentence}`, known?.code)
}

const ADDRESS_ERRORS: Record<string, string> = {
  EADDRINUSE: 'The port is in use. Set MAYFLY_PORT to a free one, other than MAYFLY_METRICS_PORT.',
  EACCES: 'This user may not listen on that port. Set MAYFLY_PORT to one above 1023.',
  EADDRNOTAVAIL: 'MAYFLY_HOST is not an address of this machine.',
  ENOTFOUND: 'MAYFLY_HOST is not an address of this machine.',
}

const STOPPED_EARLY = 'Stopped before it listened. The next start begins again.\n'
const STOPPING = 'Stopping after the requests under way. Signal again to stop at once.\n'

/** Resolves at the next signal to stop. */
function signalled(): Promise<false> {
  return new Promise((resolve) => {
    const done = (): void => {
      process.off('SIGINT', done)
      process.off('SIGTERM', done)
      resolve(false)
    }
    process.on('SIGINT', done)
    process.on('SIGTERM', done)
  })
}
