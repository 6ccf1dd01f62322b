/** What the operator's commands on orders work with: the service's node, secrets and products. */
import type { Config } from '../../config.ts'
import type { Db } from '../../db/db.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Lightning } from '../../lightning/lightning.ts'
import { NodeError } from '../../lightning/node/error.ts'
import { type Opened, openLightning } from '../../lightning/open.ts'
import { PROVISIONINGS } from '../../products.ts'
import { secretsGiven } from '../../secret-file.ts'
import { createSecrets } from '../../secrets/secrets.ts'
import { bindStore } from '../../store-identity.ts'
import { CliError, EXIT } from '../exit.ts'

/** What settles or delivers an order beside the service. */
export const settlingDeps = async (config: Config, db: Db) => ({
  db,
  secrets: createSecrets(await secretsGiven(config)(db)),
  clock: systemClock,
  products: PROVISIONINGS,
})

/**
 * Works with the node of the settings, if the store belongs to it.
 * @throws CliError for a node that does not answer, or that these settings do not open.
 * @throws ConfigError where the store belongs to another node.
 */
export async function withNode<T>(
  config: Config,
  db: Db,
  work: (lightning: Lightning) => Promise<T>,
): Promise<T> {
  const node = await openNode(config, db)
  try {
    const { network } = await node.lightning.info()
    await bindStore(db, { backend: config.lightningUrl.kind, network })
    return await work(node.lightning)
  } catch (error) {
    throw error instanceof NodeError ? new CliError(`${error.message}.`, EXIT.later) : error
  } finally {
    await node.close()
  }
}

async function openNode(config: Config, db: Db): Promise<Opened> {
  const warn = (reason: string): void => void process.stderr.write(`${reason}\n`)
  const node = await openLightning(config.lightningUrl.url, { db, clock: systemClock, warn }).catch(
    (error: unknown) => {
      // A file or a form that the setting names: the message says which.
      throw isSettingsError(error) ? new CliError(error.message, EXIT.usage) : error
    },
  )
  const { problem } = node
  if (problem === null) return node
  await node.close()
  throw new CliError(problem.sentence, problem.isAway ? EXIT.later : EXIT.usage)
}

/** Reading a URL or its files throws a plain Error. Any other kind is a bug. */
const isSettingsError = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'Error'
