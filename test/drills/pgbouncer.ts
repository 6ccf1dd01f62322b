/** Debian's PgBouncer in front of a server, in a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type After, temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { serverUser } from './debian.ts'

const PROGRAM = '/usr/sbin/pgbouncer'

export type PoolMode = 'session' | 'transaction' | 'statement'

export type PgBouncer = {
  url: string
  /** Starts it on the same port as before, in this mode. */
  start(mode: PoolMode): Promise<void>
  /** SIGTERM cuts all connections at once, as a restart by systemd does. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

export async function startPgBouncer(
  t: After,
  { port: server, mode, poolSize = 80 }: { port: number; mode: PoolMode; poolSize?: number },
): Promise<PgBouncer> {
  if (!existsSync(PROGRAM)) throw new Error('PgBouncer is missing: apt-get install pgbouncer.')
  const user = await serverUser()
  const folder = await temporaryFolder(t)
  await chmod(folder, 0o755)
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  const users = join(folder, 'users.txt')
  await writeFile(users, '"mayfly" ""\n')
  let child: ChildProcess | null = null

  const made: PgBouncer = {
    url: `postgres://mayfly@127.0.0.1:${port}/mayfly`,
    async start(mode) {
      const lines = [
        '[databases]',
        `mayfly = host=127.0.0.1 port=${server} dbname=mayfly`,
        '[pgbouncer]',
        'listen_addr = 127.0.0.1',
        `listen_port = ${port}`,
        'unix_socket_dir =',
        'auth_type = trust',
        `auth_file = ${users}`,
        `pool_mode = ${mode}`,
        `default_pool_size = ${poolSize}`,
        'max_client_conn = 500',
      ]
      await writeFile(file, `${lines.join('\n')}\n`)
      child = spawn(PROGRAM, [file], { ...user, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
      let told = ''
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        told = (told + text).slice(-4_000)
      })
      await until(
        'PgBouncer listens',
        () => told.includes('process up') || child?.exitCode !== null,
      )
      if (child.exitCode !== null) throw new Error(`PgBouncer did not start: ${told}`)
    },
    async stop(signal) {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
    },
  }
  t.after(() => made.stop('SIGKILL'))
  await made.start(mode)
  return made
}
