/**
 * Builds LND and btcd from LND's own module, once, into the user's cache. LND's go.mod and go.sum pin what both are
 * made of. `node test/support/nodes/build.ts` does it ahead of the tests and prints the folder.
 */
import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const LND = 'github.com/lightningnetwork/lnd'
const LND_VERSION = 'v0.21.3-beta'
/** Of LND's source, as Go computes it. */
const LND_SUM = 'h1:Tp1YdwnP0daq/wenwObkaCqe0hckIRnxibN2QKoUv9Y='

/** `lowscrypt` makes wallet keys cheap, so that a node starts in 0.3 s. It changes nothing else. */
const TAGS = [
  'chainrpc',
  'invoicesrpc',
  'peersrpc',
  'routerrpc',
  'signrpc',
  'walletrpc',
  'lowscrypt',
].join(',')
const PACKAGES = [`${LND}/cmd/lnd`, 'github.com/btcsuite/btcd']

const LOCK_WAIT_MS = 30 * 60_000

/** The folder with the binaries `lnd` and `btcd`, or the reason why they are missing. */
export type NodeBinaries = { folder: string } | { missing: string }

/** Finds the binaries. Builds them if they are missing and Go is installed (5 minutes without a cache). */
export async function nodeBinaries(): Promise<NodeBinaries> {
  const given = process.env.TESTNODES_BIN
  if (given) {
    return existsSync(join(given, 'lnd')) && existsSync(join(given, 'btcd'))
      ? { folder: given }
      : { missing: 'TESTNODES_BIN names a folder without lnd and btcd' }
  }
  const folder = join(cacheFolder(), `bin-${fingerprint()}`)
  if (existsSync(folder)) return { folder }
  if (spawnSync('go', ['version']).status !== 0) return { missing: 'Go is not installed' }
  await underLock(`${folder}.lock`, () => {
    if (!existsSync(folder)) build(folder)
  })
  return { folder }
}

function build(folder: string): void {
  const draft = `${folder}.${randomBytes(4).toString('hex')}`
  mkdirSync(draft, { recursive: true })
  process.stderr.write(`building LND ${LND_VERSION} and btcd into the cache, once\n`)
  const flags = `-s -w -X ${LND}/build.Commit=${LND_VERSION} -X ${LND}/build.RawTags=${TAGS}`
  const go = spawnSync(
    'go',
    [
      ...['build', '-mod=readonly', '-trimpath', '-ldflags', flags, '-tags', TAGS],
      ...['-o', `${draft}/`, ...PACKAGES],
    ],
    { cwd: lndSource(), stdio: ['ignore', 2, 2], env: { ...process.env, CGO_ENABLED: '0' } },
  )
  if (go.status !== 0) {
    rmSync(draft, { recursive: true, force: true })
    throw new Error(`go build of the test nodes ended with ${go.status ?? go.signal}`)
  }
  renameSync(draft, folder)
}

/** The folder with LND's source. `go install` refuses it, because its go.mod replaces modules. */
function lndSource(): string {
  // The sum is compared here, so nobody else need be asked for it.
  const env = { ...process.env, GOSUMDB: 'off' }
  const go = spawnSync('go', ['mod', 'download', '-json', `${LND}@${LND_VERSION}`], { env })
  const { Dir, Sum, Error: problem } = JSON.parse(String(go.stdout)) as Record<string, string>
  if (!Dir || Sum !== LND_SUM) throw new Error(`LND's source: ${problem ?? `it has ${Sum}`}`)
  return Dir
}

/** Runs the work under a lock: of the test files that run in parallel, one builds and the others wait. */
async function underLock(lock: string, work: () => void): Promise<void> {
  mkdirSync(cacheFolder(), { recursive: true })
  const giveUpAt = Date.now() + LOCK_WAIT_MS
  while (!claimed(lock)) {
    if (Date.now() > giveUpAt) throw new Error('another build of the test nodes does not end')
    await wait(200)
  }
  try {
    work()
  } finally {
    rmSync(lock, { force: true })
  }
}

function claimed(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    if (!isHeld(lock)) rmSync(lock, { force: true })
    return false
  }
}

/** Whether the process that wrote the lock is still running. */
function isHeld(lock: string): boolean {
  try {
    process.kill(Number(readFileSync(lock, 'utf8')) || process.pid, 0)
    return true
  } catch {
    return false
  }
}

function fingerprint(): string {
  return createHash('sha256').update(LND_SUM).update(TAGS).digest('hex').slice(0, 16)
}

function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'mayfly-testnodes')
}

if (import.meta.main) {
  const found = await nodeBinaries()
  if ('missing' in found) throw new Error(found.missing)
  process.stdout.write(`${found.folder}\n`)
}
