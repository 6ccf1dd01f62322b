/** The frame of the operator's commands on the store, beside the running service. */
import { type Config, ConfigError, readConfig } from '../../config.ts'
import { type Db, StoreUnusable } from '../../db/db.ts'
import { openStore } from '../../db/open.ts'

/** What a command says; `isDone` is false where nothing was there to do. */
export type Said = { isDone: boolean; text: string }

/** Resolves to the exit code. What the operator can mend ends as a sentence. */
export async function operate(work: (config: Config) => Promise<Said>): Promise<number> {
  try {
    const { isDone, text } = await work(readConfig())
    ;(isDone ? process.stdout : process.stderr).write(text)
    return isDone ? 0 : 1
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof StoreUnusable)) throw error
    process.stderr.write(`${error.message}\n`)
    return 1
  }
}

/** The same with the store open. */
export function operateOnStore(work: (config: Config, db: Db) => Promise<Said>): Promise<number> {
  return operate(async (config) => {
    const db = await openStore(config.databaseUrl)
    try {
      return await work(config, db)
    } finally {
      await db.close()
    }
  })
}
