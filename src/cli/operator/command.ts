/** Runs the operator's commands. They work on the store, even while the service runs. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Db, StoreAway, StoreUnusable } from '../../db/db.ts'
import { type SteadyClock, systemClock } from '../../lib/clock.ts'
import { type Config, readConfig } from '../../service/config.ts'
import {
  type Add,
  type Declared,
  declare,
  type Given,
  type GlobalOptions,
  type Nothing,
  type Takes,
} from '../declare.ts'
import { CliError, EXIT, misuse } from '../exit.ts'
import { finish, type Output, openOutput } from '../output.ts'

/** The answer of a command: JSON for programs, text for people. */
export type Answer = {
  json: unknown
  text: string
  /** A sentence on stderr. */
  note?: string
}

/** A command of the operator. It answers in text unless `--json` is given. */
export const operator =
  <const T extends Takes = Nothing>(
    declared: Declared<T> & {
      /** Resolves to what it answers, or to its exit code. */
      run(given: Given<T> & GlobalOptions, output: Output): Promise<Answer | number>
    },
  ): Add =>
  (parent) =>
    declare<T>(parent, declared, async (given) => {
      const output = openOutput(given, given.json ?? false)
      process.exitCode = await finish(given, async () => {
        try {
          const done = await declared.run(given, output)
          if (typeof done === 'number') return done
          if (done.note !== undefined) output.warn(done.note)
          return output.answer(done.json, done.text)
        } catch (error) {
          throw ofStore(error) ?? error
        }
      })
    })

/** What is wrong with the store, if it is the store's fault. What is away now may be there later. */
export function ofStore(error: unknown): CliError | null {
  if (error instanceof StoreAway) return new CliError(`${error.message}.`, EXIT.later)
  if (!(error instanceof StoreUnusable)) return null
  return new CliError(error.message, error.isAway ? EXIT.later : EXIT.failed)
}

/** A reason is a line of a list, of the log or of the books. */
const MAX_REASON_CHARACTERS = 500

/** @throws CliError for what is no line. */
export function checkReason(reason: string): void {
  if (reason.length > MAX_REASON_CHARACTERS || /\p{Cc}/u.test(reason)) {
    throw misuse(`A reason is one line of at most ${MAX_REASON_CHARACTERS} characters.`)
  }
}

/** The settings of the service and its store, with the store's own time: this machine's may be wrong. */
export type Store = { config: Config; db: Db; clock: SteadyClock }

/**
 * Opens the store of the settings for `work`. The engines are loaded only here. In a wrong folder there is no store
 * that has nothing in it: a new one would answer that nobody bought anything.
 * @param mayCreate whether the command may come before the first start of the service
 * @throws CliError if there is no store
 */
export async function withStore<T>(work: (on: Store) => Promise<T>, mayCreate = false): Promise<T> {
  const config = readConfig()
  if (config.databaseUrl.kind === 'sqlite' && !mayCreate) {
    const file = resolve(config.databaseUrl.file)
    if (!existsSync(file)) {
      throw misuse(
        `There is no store at ${file}. Run this in the folder of the service, or with its MAYFLY_DATABASE_URL.`,
      )
    }
  }
  const [{ openStore }, { storeClock }] = await Promise.all([
    import('../../db/open.ts'),
    import('../../db/clock.ts'),
  ])
  // Somebody waits for the answer, unlike at the start of a service.
  const db = await openStore(config.databaseUrl, { startWithinMs: 0 })
  try {
    return await work({ config, db, clock: await storeClock(db, systemClock) })
  } finally {
    await db.close()
  }
}
