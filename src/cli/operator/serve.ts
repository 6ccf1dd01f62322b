/** `mayfly serve`: the service, in the foreground, until it is told to stop. */
import { pino } from 'pino'
import { type Config, ConfigError, readConfig } from '../../config.ts'
import { StoreUnusable } from '../../db/db.ts'
import { type Server, serve } from '../../serve.ts'
import { onceATurn } from './log-output.ts'

/** Fields that could carry a secret are cut, should one ever be logged. */
export const REDACTED = [
  'req',
  'res',
  'headers',
  'body',
  'authorization',
  'preimage',
  '["payment-preimage"]',
  '*.headers',
  '*.authorization',
  '*.preimage',
  '*["payment-preimage"]',
]

export async function serveCommand(): Promise<number> {
  // Asked for before anything is started: a signal must never find nobody listening.
  const stop = signalled()
  let server: Server
  try {
    const config = readConfig()
    const output = onceATurn(pino.destination())
    process.once('exit', output.flush)
    const log = pino(
      {
        level: config.logLevel,
        base: null,
        messageKey: 'message',
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (level) => ({ level }) },
        redact: { paths: REDACTED, remove: true },
      },
      output,
    )
    server = await serve(config, log)
    greet(config, server)
  } catch (error) {
    if (isForTheOperator(error)) {
      process.stderr.write(`Mayfly did not start. ${error.message}\n`)
      return 1
    }
    throw error
  }
  await stop
  process.stderr.write('Stopping: finishing what is under way. Once more to stop at once.\n')
  void signalled().then(() => process.exit(1))
  await server.stop()
  // The second signal's listeners are all that is left.
  process.exit(0)
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
      'To sell for real, set MAYFLY_LIGHTNING_URL to your node (docs/nodes.md).',
    )
  }
  process.stderr.write(`${lines.join('\n')}\n\n`)
}

/** Host and database of a server: what else is in its URL may be a secret. */
function shownStore({ databaseUrl }: Config): string {
  if (databaseUrl.kind === 'sqlite') return databaseUrl.file
  const { host, pathname } = new URL(databaseUrl.url)
  return `PostgreSQL ${host}${pathname}`
}

function isForTheOperator(error: unknown): error is Error {
  if (error instanceof ConfigError || error instanceof StoreUnusable) return true
  if (!(error instanceof Error) || !('code' in error)) return false
  const sentences: Record<string, string> = {
    EADDRINUSE: 'The port is taken by another program. Set MAYFLY_PORT to a free one.',
    EACCES: 'This user may not listen on that port. Set MAYFLY_PORT to one above 1023.',
    EADDRNOTAVAIL: 'MAYFLY_HOST is not an address of this machine.',
    ENOTFOUND: 'MAYFLY_HOST is not an address of this machine.',
  }
  const sentence = sentences[String(error.code)]
  if (sentence) error.message = sentence
  return sentence !== undefined
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      process.off('SIGINT', done)
      process.off('SIGTERM', done)
      resolve()
    }
    process.on('SIGINT', done)
    process.on('SIGTERM', done)
  })
}
