/** Checks that stop a start with a sentence for the operator. */

import type { Db } from '../db/db.ts'
import type { Network } from '../lightning/lightning.ts'
import type { Opened } from '../lightning/open.ts'
import { isLoopback } from '../protocol/ip-address.ts'
import { type Config, ConfigError } from './config.ts'
import { outboundRules } from './outbound-rules.ts'
import { ALL_LIMITS, readAllPlans } from './products.ts'
import { readRates } from './rates.ts'
import { secretSource, secretsGiven } from './secret-file.ts'
import { bindStore } from './store-identity.ts'

/**
 * The network on which this server sells. An unreachable node may come back, so the start continues if the
 * store knows its network. Any other problem with the node stops the start.
 */
export async function networkOf(node: Opened, config: Config, db: Db): Promise<Network> {
  const { problem } = node
  if (problem && !problem.isAway) throw new ConfigError(problem.sentence)
  const reported = problem ? null : (await node.lightning.info()).network
  const backend = config.lightningUrl.kind
  const network = await bindStore(db, { backend, network: reported, away: problem?.sentence })
  if (config.network !== null && config.network !== network) {
    throw new ConfigError(`MAYFLY_NETWORK is ${config.network}, and the node is on ${network}.`)
  }
  return network
}

/** Turns the error of a room below into a ConfigError if its message begins with the name of a setting. */
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

/**
 * What a start reads of its settings before it opens anything, and the doctor besides.
 * @throws ConfigError for what stops a start.
 */
export function readForStart(config: Config) {
  refusePublicSimulator(config)
  outboundRules(config, config.network)
  const isSimulator = config.lightningUrl.kind === 'simulator'
  return {
    listed: readAllPlans(config.catalog),
    rates: readRates(config.rateLimits, ALL_LIMITS, { isSimulator }),
    ownSecrets: secretsGiven(config),
  }
}

/** A missing variable must not turn a public service into one that gives everything away. */
function refusePublicSimulator(config: Config): void {
  const host = config.baseUrl ? new URL(config.baseUrl).hostname : config.host
  const isLocal = [host, config.host].every(isLoopback)
  if (config.lightningUrl.kind === 'simulator' && config.simulator === 'local' && !isLocal) {
    throw new ConfigError(
      'The simulator takes no real money, and MAYFLY_HOST or MAYFLY_BASE_URL is not loopback. ' +
        'Set MAYFLY_LIGHTNING_URL to a real node, or MAYFLY_SIMULATOR=public to give everything away.',
    )
  }
}

/** The service speaks plain HTTP, so if its public address is https, a proxy in front terminates TLS. */
export function isBehindTls({ baseUrl }: Config): boolean {
  return baseUrl?.startsWith('https:') ?? false
}

/** Without the secret of an order, a repeat would not find the order, and the buyer would pay again. */
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
