/** A replay store in a folder, which survives restarts. */
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../lib/errors.ts'
import { lazily } from '../lib/lazily.ts'
import type { ReplayStore } from './replay-store.ts'

/** Files are in subfolders by the first byte of their name, so that no folder grows large. */
const SHARD_DIGITS = 2
/** One of 256 subfolders is swept at a time, so that all are swept within a day. */
const SWEEP_EVERY_MS = 5 * 60_000
const SHARDS = 16 ** SHARD_DIGITS
/** The file with the time at which the folder was first used. */
const SINCE = 'since'

/**
 * A store in this folder, which servers on one machine may share. Each key is a file, created
 * exclusively and flushed to disk before its request is admitted.
 *
 * ```ts
 * const gate = createGate({ url, projectId, capability, store: fileStore('/var/lib/my-api/gate') })
 * ```
 */
export function fileStore(folder: string, now: () => number = Date.now): ReplayStore {
  let nextShard = 0
  let sweptAt = Number.NEGATIVE_INFINITY

  /** When the folder was first used. Whoever deletes the folder deletes this time with its keys. */
  async function since(): Promise<number> {
    const file = join(folder, SINCE)
    const at = now()
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeNew(file, folder, String(at))
    // A truncated file means that the time is unknown.
    return Number(await readFile(file, 'utf8')) || Number.POSITIVE_INFINITY
  }

  const begun = lazily(since)

  async function add(key: string, ttlMs: number): Promise<boolean> {
    const name = createHash('sha256').update(key).digest('hex')
    const shard = join(folder, name.slice(0, SHARD_DIGITS))
    const file = join(shard, name)
    await mkdir(shard, { recursive: true, mode: 0o700 })
    return writeNew(file, shard, String(now() + ttlMs))
  }

  /** Deletes expired keys of one subfolder. */
  async function sweep(): Promise<void> {
    if (now() - sweptAt < SWEEP_EVERY_MS) return
    sweptAt = now()
    const shard = join(folder, nextShard.toString(16).padStart(SHARD_DIGITS, '0'))
    nextShard = (nextShard + 1) % SHARDS
    for (const name of await readdir(shard).catch(() => [])) {
      const file = join(shard, name)
      const until = Number(await readFile(file, 'utf8'))
      // A truncated file has no time. It stays, since its handler may have run.
      if (until > 0 && until < now()) await rm(file, { force: true })
    }
  }

  return {
    since,
    async add(key, ttlMs) {
      await begun()
      const isNew = await add(key, ttlMs)
      // A failed sweep only costs disk space, so it must not fail the request.
      await sweep().catch(() => {})
      return isNew
    },
  }
}

/** Creates a file and flushes it to disk. False if it existed. */
async function writeNew(file: string, folder: string, text: string): Promise<boolean> {
  const handle = await open(file, 'wx', 0o600).catch((error: unknown) => {
    if (codeOf(error) === 'EEXIST') return null
    throw error
  })
  if (!handle) return false
  try {
    await handle.writeFile(text)
    await handle.sync()
    await syncFolder(folder)
  } catch (error) {
    // The request was not admitted, so the payer can repeat it.
    await rm(file, { force: true }).catch(() => {})
    throw error
  } finally {
    await handle.close()
  }
  return true
}

/** Flushes the folder, and with it the name of a new file. Windows neither can nor needs to. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}
