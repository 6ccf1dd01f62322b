/**
 * The only place that wires: configuration → store → Lightning → payment → products → HTTP. It
 * owns the order in which things start and, in reverse, stop.
 */
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { type IpLocator, installedDatabases, openIpLocator } from './catch/ip-location.ts'
import { type Config, ConfigError } from './config.ts'
import type { Db } from './db/db.ts'
import { migrate } from './db/migrate.ts'
import { openSqlite } from './db/sqlite.ts'
import { openGate } from './gate/open.ts'
import { type AppOptions, createApp } from './http/app.ts'
import { mountCatalog } from './http/catalog.ts'
import { createClientAddress } from './http/client-address.ts'
import { createEventStreams } from './http/event-stream.ts'
import { mountHealth } from './http/health.ts'
import { createLimits } from './http/limits.ts'
import { mountPoll } from './http/payments.ts'
import { mountSimulator } from './http/simulator.ts'
import { mountText } from './http/text.ts'
import { createUploads } from './http/uploads.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import type { Network } from './lightning/lightning.ts'
import { type Opened, openLightning } from './lightning/open.ts'
import { llmsText } from './llms.ts'
import { createL402Flow } from './payment/flows/l402.ts'
import { createPaymentFlow } from './payment/flows/payment-auth.ts'
import { createNodeHealth } from './payment/health.ts'
import { createOrders } from './payment/orders.ts'
import { createSecrets } from './payment/secrets.ts'
import { createWatcher } from './payment/watcher.ts'
import { openProducts, readAllPlans } from './products.ts'
import { readRates } from './rates.ts'
import { secretBeside } from './secret-file.ts'
import { bindStore } from './store-identity.ts'

/** Expired content is gone at once; its bytes are, within this and the store's own truncation. */
const PURGE_EVERY_MS = 30_000

/** What the catalogue says of each product while the simulator is the node. */
const SIMULATED = ' Simulator: no real money moves.'

export type Server = {
  /** Where it listens, with the port that was picked. */
  url: string
  /** Stops accepting, finishes what is under way, and lets go of everything. */
  stop(): Promise<void>
}

export type ServeOptions = { clock?: Clock; timeouts?: AppOptions['timeouts'] }

/**
 * Starts the service.
 * @throws ConfigError or StoreUnusable with a sentence for the operator.
 */
export async function serve(
  config: Config,
  log: Logger,
  { clock = systemClock, timeouts }: ServeOptions = {},
): Promise<Server> {
  refusePublicSimulator(config)
  const plans = readAllPlans(config.catalog)
  const rates = readRates(config.rateLimits, config.lightningUrl.kind === 'simulator')
  const { clientAddress, isProxied } = createClientAddress(config.trustedProxies)
  const stopping = new AbortController()

  const db = await openSqlite(config.databaseUrl.file)
  /** What to let go of, the last opened first. */
  const closing: (() => Promise<void>)[] = [db.close]
  const closeAll = async (): Promise<void> => {
    for (const close of closing.toReversed()) await close()
  }
  try {
    await migrate(db)
    // Made only now: a start that the store refuses leaves no secret behind.
    const secrets = createSecrets(config.secrets ?? [secretBeside(config.databaseUrl.file)])
    const warn = (reason: string): void => log.warn({ event: 'lightning.warning', reason })
    const node = await asConfigError(openLightning(config.lightningUrl.url, { db, clock, warn }))
    closing.push(node.close)
    const { lightning } = node
    const network = await networkOf(node, config, db)
    const health = createNodeHealth(lightning, network, log)
    const locator = await openLocator(config, log)
    closing.push(async () => locator.close())
    const products = openProducts({
      plans,
      unpaidBytes: config.unpaidBytes,
      db,
      clock,
      isProxied,
      locate: locator.locate,
    })
    const orders = createOrders({
      db,
      lightning,
      health,
      secrets,
      clock,
      log,
      products: Object.fromEntries(
        products.map(({ product, provisioning }) => [product, provisioning]),
      ),
      quoteSeconds: config.quoteSeconds,
    })
    await refuseForeignOrders(orders.reseal())
    await health.start(stopping.signal)
    const watcher = createWatcher({ db, lightning, orders, clock, log })

    /** Set when the port is known: an address without one is nobody's. */
    let url = ''
    const publicUrl = (): string => config.baseUrl ?? url
    const app = await createApp({
      log,
      publicUrl,
      schemas: Object.assign({}, ...products.map(({ schemas }) => schemas)),
      ...(timeouts ? { timeouts } : {}),
    })
    const streams = createEventStreams(app)
    const limits = createLimits(rates, clientAddress)
    const flows = {
      payment: createPaymentFlow({ keys: secrets.keys('payment challenge'), publicUrl }),
      l402: createL402Flow({ keys: secrets.keys('l402 root'), publicUrl, clock }),
    }
    const paying = { orders, flows, clientAddress, limits, uploads: createUploads() }
    mountHealth(app)
    mountCatalog(app, {
      health,
      limits,
      clientAddress,
      notice: node.simulator ? SIMULATED : '',
      entries: products.map(({ product, catalog }) => ({ product, ...catalog })),
    })
    mountPoll(app, { orders, limits, resources: products.map(({ capability }) => capability) })
    for (const { mount } of products) mount(app, paying, { streams })
    if (node.simulator) mountSimulator(app, node.simulator)
    const isSimulator = node.simulator !== null
    const guides = products.map(({ guide }) => guide)
    mountText(app, '/llms.txt', () => llmsText({ baseUrl: publicUrl(), isSimulator, guides }))
    const gate =
      config.gate === 'on'
        ? await openGate(app, {
            db,
            simulator: node.simulator,
            allowed: config.gateAllowedHosts,
            network,
            secrets,
            limits,
            clock,
            log,
            publicUrl,
            quoteSeconds: config.quoteSeconds,
          })
        : null
    if (gate) {
      closing.push(gate.close)
      await refuseForeignOrders(gate.service.foreign())
    }

    await app.listen({ host: config.host, port: config.port })
    const purges = products.map(({ product, purge }) =>
      every(
        PURGE_EVERY_MS,
        async () => {
          const gone = await purge()
          if (gone > 0) log.info({ event: 'product.purged', product, gone })
        },
        (error) => log.error({ event: 'product.purge_failed', product, err: error }),
      ),
    )
    const purgingGate =
      gate &&
      every(
        PURGE_EVERY_MS,
        async () => void (await gate.service.purge()),
        (error) => log.error({ event: 'gate.purge_failed', err: error }),
      )
    watcher.start(stopping.signal)
    const { port } = app.server.address() as AddressInfo
    url = `http://${hostInUrl(config.host)}:${port}`
    log.info({ event: 'listening', url })

    return {
      url,
      async stop() {
        stopping.abort()
        await app.close()
        await Promise.all(purges.map((purging) => purging.stop()))
        await purgingGate?.stop()
        await watcher.stopped()
        await closeAll()
        log.info({ event: 'stopped' })
      },
    }
  } catch (error) {
    stopping.abort()
    await closeAll()
    throw error
  }
}

/**
 * The network that this server sells on. A node that is only away now may come back, so a store
 * that knows its network starts without it; anything else about the access stops the start.
 */
async function networkOf(node: Opened, config: Config, db: Db): Promise<Network> {
  const { problem } = node
  if (problem && !problem.isAway) throw new ConfigError(problem.sentence)
  const said = problem ? null : (await node.lightning.info()).network
  const network = await bindStore(db, { backend: config.lightningUrl.kind, network: said })
  if (config.network !== null && config.network !== network) {
    throw new ConfigError(`MAYFLY_NETWORK is ${config.network}, and the node is on ${network}.`)
  }
  return network
}

/** The databases that are configured, or else the ones that are installed. */
async function openLocator(config: Config, log: Logger): Promise<IpLocator> {
  const files = config.geoipDatabase.length > 0 ? config.geoipDatabase : installedDatabases()
  try {
    return await openIpLocator(files, (file, error) => {
      log.error({ event: 'geoip.reload_failed', file, reason: String(error) })
    })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ConfigError(`MAYFLY_GEOIP_DATABASE must name readable .mmdb files (${reason}).`)
  }
}

async function asConfigError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('MAYFLY_')) {
      throw new ConfigError(`${error.message}.`)
    }
    throw error
  }
}

/** A lost variable must not turn a public service into one that gives everything away. */
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

function isLoopback(host: string): boolean {
  return /^(?:localhost|\[?::1\]?|127(?:\.\d{1,3}){3})$/.test(host)
}

/** A server on all addresses is reached on this machine by the loopback one. */
function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

/** Without its secret, a repeat of an order would not find it, and its buyer would pay again. */
async function refuseForeignOrders(foreign: Promise<number>): Promise<void> {
  const orders = await foreign
  if (orders === 0) return
  throw new ConfigError(
    `MAYFLY_SECRET is not the one that ${orders} open or uncollected ${orders === 1 ? 'order was' : 'orders were'} made under. ` +
      'Start with that secret, or add it after a comma.',
  )
}

/** Runs `work` now and then, never twice at once; `stop` waits for the one under way. */
function every(
  ms: number,
  work: () => Promise<void>,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  let running: Promise<void> | null = null
  const timer = setInterval(() => {
    running ??= work()
      .catch(onError)
      .finally(() => {
        running = null
      })
  }, ms)
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}
