/** What stops a start, with a sentence for the operator that says what to do. */
import { type Config, ConfigError } from './config.ts'
import type { Db } from './db/db.ts'
import type { Network } from './lightning/lightning.ts'
import type { Opened } from './lightning/open.ts'
import { secretSource } from './secret-file.ts'
import { bindStore } from './store-identity.ts'

/**
 * The network that this server sells on. A node that is only away now may come back, so a store
 * that knows its network starts without it; anything else about the access stops the start.
 */
export async function networkOf(node: Opened, config: Config, db: Db): Promise<Network> {
  const { problem } = node
  if (problem && !problem.isAway) throw new ConfigError(problem.sentence)
  const said = problem ? null : (await node.lightning.info()).network
  const network = await bindStore(db, { backend: config.lightningUrl.kind, network: said })
  if (config.network !== null && config.network !== network) {
    throw new ConfigError(`MAYFLY_NETWORK is ${config.network}, and the node is on ${network}.`)
  }
  return network
}

/** A setting that a room below found wrong, as what stops the start. */
export async function asConfigError<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('MAYFLY_')) {
      throw new ConfigError(`${error.message}.`)
    }
    throw error
  }
}

/** A lost variable must not turn a public service into one that gives everything away. */
export function refusePublicSimulator(config: Config): void {
  const host = config.baseUrl ? new URL(config.baseUrl).hostname : config.host
  const isLocal = [host, config.host].every(isLoopback)
  if (config.lightningUrl.kind === 'simulator' && config.simulator === 'local' && !isLocal) {
    throw new ConfigError(
      'The simulator takes no real money, and MAYFLY_HOST or MAYFLY_BASE_URL is not loopback. ' +
        'Set MAYFLY_LIGHTNING_URL to a real node, or MAYFLY_SIMULATOR=public to give everything away.',
    )
  }
}

export function isLoopback(host: string): boolean {
  return /^(?:localhost|\[?::1\]?|127(?:\.\d{1,3}){3})$/.test(host)
}

/** This service speaks plain HTTP: where its public address does not, something stands in front. */
export function isBehindTls({ baseUrl }: Config): boolean {
  return baseUrl?.startsWith('https:') ?? false
}

/** Without its secret, a repeat of an order would not find it, and its buyer would pay again. */
export async function refuseForeignOrders(foreign: Promise<number>, config: Config): Promise<void> {
  const orders = await foreign
  if (orders === 0) return
  throw new ConfigError(
    `The secret in ${secretSource(config)} is not the one that ${orders} open or uncollected ${orders === 1 ? 'order was' : 'orders were'} made under. ` +
      (config.secrets === null
        ? 'Restore the secret that belongs to this store.'
        : 'Set that secret, or add it after a comma.'),
  )
}
