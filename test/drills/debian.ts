/**
 * Debian's PostgreSQL servers in folders of their own, which a drill may kill, freeze, copy and promote. They
 * touch no cluster of the packages, listen to loopback only, and end with the drill.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { type After, temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)

/** What Debian has installed, or a sentence that says what to install. */
const PROGRAMS = '/usr/lib/postgresql'
const HOW_TO_INSTALL =
  'Debian’s PostgreSQL is missing: apt-get install postgresql postgresql-contrib. Its own cluster is not used and need not run.'

export type Cluster = {
  port: number
  /** The URL of the drill's database. */
  url: string
  start(): Promise<void>
  /** Kills all processes of the server at once, as a loss of power would. */
  kill(): Promise<void>
  /** Stops all processes of the server without ending them. @returns what lets them continue. */
  freeze(): () => void
  /** A standby becomes a primary. Resolves when it takes writes. */
  promote(): Promise<void>
  /** Runs a statement as the superuser. */
  sql(text: string): Promise<Record<string, unknown>[]>
}

export type Clusters = {
  primary(settings?: Record<string, string>): Promise<Cluster>
  /** A streaming standby, made with pg_basebackup, through this port. Resolves when it streams. */
  standbyOf(primary: Cluster, port?: number): Promise<Cluster>
}

const SETTINGS = {
  unix_socket_directories: '',
  listen_addresses: '127.0.0.1',
  max_connections: '150',
  // Standbys ask more often than PostgreSQL's default of 5 s whether there is something to stream.
  wal_retrieve_retry_interval: '200ms',
}

export async function debianClusters(t: After): Promise<Clusters> {
  const bin = programs()
  const user = await serverUser()
  const folder = await temporaryFolder(t)
  await chmod(folder, 0o755)
  let made = 0

  async function newFolder(): Promise<string> {
    const data = join(folder, `data-${++made}`)
    await mkdir(data, { mode: 0o700 })
    if (user) await chown(data, user.uid, user.gid)
    return data
  }

  const tool = (name: string, args: string[]) =>
    run(join(bin, name), args, { ...user, cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } })

  async function cluster(data: string, settings: Record<string, string>): Promise<Cluster> {
    const port = await freePort()
    let child: ChildProcess | null = null
    const all = (): number[] => (child?.pid === undefined ? [] : family(child.pid))
    const admin = `postgres://mayfly@127.0.0.1:${port}/postgres`

    async function kill(): Promise<void> {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      for (const pid of all()) signal(pid, 'SIGKILL')
      await ended
    }

    async function sql(text: string): Promise<Record<string, unknown>[]> {
      const client = new Client({ connectionString: admin, connectionTimeoutMillis: 5_000 })
      await client.connect()
      try {
        return (await client.query(text)).rows
      } finally {
        await client.end()
      }
    }

    t.after(kill)
    return {
      port,
      url: `postgres://mayfly@127.0.0.1:${port}/mayfly`,
      async start() {
        const all = Object.entries({ ...SETTINGS, ...settings, port: String(port) })
        const flags = all.flatMap(([name, value]) => ['-c', `${name}=${value}`])
        child = spawn(join(bin, 'postgres'), ['-D', data, ...flags], {
          ...user,
          cwd: '/',
          env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        let told = ''
        child.stderr?.setEncoding('utf8').on('data', (text: string) => {
          told = (told + text).slice(-4_000)
        })
        await until('the server accepts connections', async () => {
          if (child?.exitCode !== null) return told
          return (await sql('select 1')).length === 1
        })
        if (child.exitCode !== null) throw new Error(`PostgreSQL did not start: ${told}`)
      },
      kill,
      freeze() {
        const pids = all()
        for (const pid of pids) signal(pid, 'SIGSTOP')
        return () => {
          for (const pid of pids) signal(pid, 'SIGCONT')
        }
      },
      async promote() {
        await sql('select pg_promote(true, 60)')
        await until('the promoted server takes writes', async () => {
          const [row] = await sql('select pg_is_in_recovery() as is_standby')
          return row?.is_standby === false
        })
      },
      sql,
    }
  }

  return {
    async primary(settings = {}) {
      const data = await newFolder()
      const flags = ['--auth=trust', '--encoding=UTF8', '--locale=C', '--no-instructions']
      await tool('initdb', ['-D', data, '-U', 'mayfly', ...flags])
      const made = await cluster(data, settings)
      await made.start()
      await made.sql('create database mayfly')
      return made
    },
    async standbyOf(primary, port = primary.port) {
      const data = await newFolder()
      const from = `host=127.0.0.1 port=${port} user=mayfly application_name=standby`
      await tool('pg_basebackup', ['-D', data, '-d', from, '-R', '-X', 'stream', '-c', 'fast'])
      const made = await cluster(data, {})
      await made.start()
      await until('the standby streams', async () => {
        const rows = await primary.sql(
          `select 1 from pg_stat_replication where application_name = 'standby' and state = 'streaming'`,
        )
        return rows.length === 1
      })
      return made
    },
  }
}

/** The folder of the newest version's programs. */
function programs(): string {
  const versions = existsSync(PROGRAMS) ? readdirSync(PROGRAMS) : []
  const folders = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(PROGRAMS, version, 'bin'))
  const needed = ['postgres', 'initdb', 'pg_basebackup']
  const found = folders.find((folder) => needed.every((name) => existsSync(join(folder, name))))
  if (found === undefined) throw new Error(HOW_TO_INSTALL)
  return found
}

/** PostgreSQL refuses to run as root: as the packages' user, then. */
export async function serverUser(): Promise<{ uid: number; gid: number } | null> {
  if (process.getuid?.() !== 0) return null
  const idOf = async (flag: string) => Number((await run('id', [flag, 'postgres'])).stdout)
  return { uid: await idOf('-u'), gid: await idOf('-g') }
}

/** A process and all its descendants. One that ends meanwhile has none. */
function family(pid: number): number[] {
  let children = ''
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes(String((error as NodeJS.ErrnoException).code))) throw error
  }
  return [
    pid,
    ...children
      .split(' ')
      .filter(Boolean)
      .flatMap((child) => family(Number(child))),
  ]
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
