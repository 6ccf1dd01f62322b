/** Remembering in a folder: what was let in stays so through a restart. */
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../lib/errors.ts'
import type { ReplayStore } from './replay-store.ts'

/** Files of one folder by the first byte of their name, so that none grows long. */
const SHARD_DIGITS = 2
/** One part is swept so often, so that all are within a day. */
const SWEEP_EVERY_MS = 5 * 60_000
const SHARDS = 16 ** SHARD_DIGITS
/** The file that says when the folder began. */
const SINCE = 'since'

/**
 * A store in this folder, which servers on one machine may share: a file for each key, made by
 * exclusive creation, on the disk before anybody is let in.
 *
 * ```ts
 * const gate = createGate({ url, projectId, capability, store: fileStore('/var/lib/my-api/gate') })
 * ```
 */
export function fileStore(folder: string, now: () => number = Date.now): ReplayStore {
  let nextShard = 0
  let sweptAt = Number.NEGATIVE_INFINITY
  let begun: Promise<unknown> | null = null

  /** When the folder began: it goes with the folder, and so with what was remembered in it. */
  async function since(): Promise<number> {
    const file = join(folder, SINCE)
    const at = now()
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeNew(file, folder, String(at))
    // One that was cut off in the middle says nothing, for good.
    return Number(await readFile(file, 'utf8')) || Number.POSITIVE_INFINITY
  }

  async function add(key: string, ttlMs: number): Promise<boolean> {
    const name = createHash('sha256').update(key).digest('hex')
    const shard = join(folder, name.slice(0, SHARD_DIGITS))
    const file = join(shard, name)
    await mkdir(shard, { recursive: true, mode: 0o700 })
    return writeNew(file, shard, String(now() + ttlMs))
  }

  /** Removes what is over, a part of the folder at a time. */
  async function sweep(): Promise<void> {
    if (now() - sweptAt < SWEEP_EVERY_MS) return
    sweptAt = now()
    const shard = join(folder, nextShard.toString(16).padStart(SHARD_DIGITS, '0'))
    nextShard = (nextShard + 1) % SHARDS
    for (const name of await readdir(shard).catch(() => [])) {
      const file = join(shard, name)
      const until = Number(await readFile(file, 'utf8'))
      // An empty one was cut off in the middle: it stays, since its handler may have run.
      if (until > 0 && until < now()) await rm(file, { force: true })
    }
  }

  return {
    since,
    async add(key, ttlMs) {
      begun ??= since().catch((error: unknown) => {
        begun = null
        throw error
      })
      await begun
      const isNew = await add(key, ttlMs)
      // What cannot be swept costs room, and nobody's visit.
      await sweep().catch(() => {})
      return isNew
    },
  }
}

/** Whether the file was made by this, and is on the disk. */
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
    // Nobody was let in, so that the payer may come again.
    await rm(file, { force: true }).catch(() => {})
    throw error
  } finally {
    await handle.close()
  }
  return true
}

/** The name of a new file is on the disk when its folder is. Windows opens no folder, and needs not. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}
