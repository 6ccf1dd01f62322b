/**
 * The only place that wires: configuration → store → Lightning → payment → products → HTTP. It
 * owns the order in which things start and, in reverse, stop.
 */
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type IpLocator, installedDatabases, openIpLocator } from './catch/ip-location.ts'
import { type Config, ConfigError } from './config.ts'
import type { Db } from './db/db.ts'
import { BEAT_EVERY_MS, openDeletionClock } from './db/deletion-clock.ts'
import { measuredDb } from './db/measured.ts'
import { openStore } from './db/open.ts'
import { openGate } from './gate/open.ts'
import { type AppOptions, createApp } from './http/app.ts'
import { createBackpressure } from './http/backpressure.ts'
import { createBodyBudget } from './http/body-budget.ts'
import { mountCatalog } from './http/catalog.ts'
import { clientNetwork, createClientAddress } from './http/client-address.ts'
import { createEventStreams } from './http/event-stream.ts'
import { createFairScheduler } from './http/fair-scheduler.ts'
import { mountHealth } from './http/health.ts'
import { createLimits } from './http/limits.ts'
import { measuredLimits, measureRequests } from './http/metrics.ts'
import { createPages } from './http/pages.ts'
import { mountPoll } from './http/payments.ts'
import { mountReadiness } from './http/readiness.ts'
import { bytesIn, createPurchaseRooms } from './http/receiving.ts'
import { createResponseBudget } from './http/response-budget.ts'
import { mountSimulator } from './http/simulator.ts'
import { mountText } from './http/text.ts'
import { detectUntrustedProxies } from './http/untrusted-proxies.ts'
import { joinInstances } from './instances.ts'
import { type DeletionTime, NOTHING_IS_OVER, type SteadyClock, systemClock } from './lib/clock.ts'
import { messageOf } from './lib/errors.ts'
import type { Network } from './lightning/lightning.ts'
import { measuredLightning } from './lightning/measured.ts'
import { CURSORS, type Opened, openLightning } from './lightning/open.ts'
import { llmsText } from './llms.ts'
import { listenForScrapes, type MetricsListener } from './metrics/listener.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { createL402Flow } from './payment/flows/l402.ts'
import { createPaymentFlow } from './payment/flows/payment-auth.ts'
import { createNodeHealth } from './payment/health.ts'
import { createOrders } from './payment/orders.ts'
import { createWatcher } from './payment/watcher.ts'
import { ALL_LIMITS, openProducts, readAllPlans } from './products.ts'
import { readRates } from './rates.ts'
import { secretSource, secretsGiven } from './secret-file.ts'
import { createSecrets } from './secrets/secrets.ts'
import { bindStore, noteNode } from './store-identity.ts'

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

export type ServeOptions = { clock?: SteadyClock; timeouts?: AppOptions['timeouts'] }

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
  const rates = readRates(config.rateLimits, ALL_LIMITS, {
    isSimulator: config.lightningUrl.kind === 'simulator',
  })
  const { clientAddress, exactClient, isProxied } = createClientAddress(
    config.trustedProxies,
    isBehindTls(config),
  )
  const stopping = new AbortController()
  let isStopping = false

  // With the port off, nothing is measured: what follows is then the parts themselves.
  const metrics = config.metricsPort === null ? null : createMetrics()
  const ownSecrets = secretsGiven(config)
  const store = await openStore(config.databaseUrl, {
    onWaiting: (reason) => log.warn({ event: 'store.waiting', reason }),
  })
  const db = metrics ? measuredDb(store, metrics.store) : store
  /** What to let go of, the last opened first. */
  const closing: (() => Promise<void>)[] = [db.close]
  const closeAll = async (): Promise<void> => {
    for (const close of closing.toReversed()) await close()
  }
  try {
    // Made only now: a start that the store refuses leaves no secret behind.
    const secrets = createSecrets(await ownSecrets(db))
    const warn = (reason: string): void => log.warn({ event: 'lightning.warning', reason })
    const { clockJumped: onJump } = metrics ?? {}
    const deletion = await openDeletionClock({ db, clock, log, ...(onJump ? { onJump } : {}) })
    closing.push(deletion.close)
    const node = await asConfigError(
      openLightning(config.lightningUrl.url, { db, clock, deletion, warn }),
    )
    closing.push(node.close)
    const lightning = metrics ? measuredLightning(node.lightning, metrics.node) : node.lightning
    const paymentLog = metrics ? metrics.countedLog(log) : log
    const network = await networkOf(node, config, db)
    const health = createNodeHealth(lightning, network, log, (nodeId) =>
      noteNode(db, nodeId, Object.values(CURSORS)),
    )
    const locator = await openLocator(config, log)
    closing.push(async () => locator.close())
    const instances = await joinInstances(config.databaseUrl, { db, secrets, clock, log })
    closing.push(instances.close)
    const { hints, inTurn } = instances
    const scheduler = createFairScheduler(metrics ? { onEnded: metrics.searchEnded } : {})
    const products = openProducts({
      plans,
      unpaidBytes: config.unpaidBytes,
      db,
      hints,
      clock,
      isProxied,
      locate: locator.locate,
      scheduler,
      ...(metrics ? { onKept: metrics.ingested } : {}),
    })
    const orders = createOrders({
      db,
      lightning,
      health,
      secrets,
      clock,
      deletion,
      log: paymentLog,
      products: Object.fromEntries(
        products.map(({ product, provisioning }) => [product, provisioning]),
      ),
      quoteSeconds: config.quoteSeconds,
    })
    await refuseForeignOrders(orders.reseal(), config)
    await health.start(stopping.signal)
    const watcher = createWatcher({
      ...{ db, lightning, orders, clock, deletion, inTurn },
      log: paymentLog,
    })

    /** Set when the port is known: an address without one is nobody's. */
    let url = ''
    const publicUrl = (): string => config.baseUrl ?? url
    const isSimulator = node.simulator !== null
    const has = new Set(config.gate === 'on' ? ['gate'] : [])
    const pages = createPages({ isSimulator, has })
    const responseBudget = createResponseBudget((request) =>
      clientNetwork(clientAddress(request.raw)),
    )
    const backpressure = createBackpressure(responseBudget.reservationOf)
    const app = await createApp({
      log,
      backpressure,
      publicUrl,
      answerLost: pages.answerLost,
      schemas: Object.assign({}, ...products.map(({ schemas }) => schemas)),
      ...(timeouts ? { timeouts } : {}),
    })
    const isClientUnknown = detectUntrustedProxies(app, {
      hasTrusted: config.trustedProxies.length > 0,
      isLoopback: isLoopback(config.host),
      log,
    })
    const streams = createEventStreams(app, responseBudget)
    const bodyBudget = createBodyBudget()
    const plainLimits = createLimits(rates, clientAddress, instances.openBucket)
    const limits = metrics ? measuredLimits(app, plainLimits, metrics.rateLimited) : plainLimits
    const rooms = createPurchaseRooms()
    if (metrics) {
      measureRequests(app, metrics.response, streams.isStream)
      const { isHealthy: isSelling } = health
      const { isHeld: isDeletionHeld } = deletion
      metrics.watch({
        ...{ db: store, clock, isSelling, isDeletionHeld },
        streams: streams.countByRoute,
        bodies: bodyBudget.held,
        responseBudget,
        backpressure,
        searches: scheduler.count,
        purchaseBytes: () => bytesIn(rooms),
      })
    }
    const flows = {
      payment: createPaymentFlow({ keys: secrets.keys('payment challenge'), publicUrl }),
      l402: createL402Flow({ keys: secrets.keys('l402 root'), publicUrl, clock }),
    }
    const paying = { orders, flows, clientAddress, exactClient, isClientUnknown, limits, rooms }
    mountHealth(app)
    mountReadiness(app, { db, clock, isNodeReady: health.isHealthy, isStopping: () => isStopping })
    mountCatalog(app, {
      health,
      limits,
      clientAddress,
      notice: node.simulator ? SIMULATED : '',
      entries: products.map(({ product, catalog }) => ({ product, ...catalog })),
    })
    mountPoll(app, { ...paying, resources: products.map(({ capability }) => capability) })
    for (const { mount } of products) mount(app, paying, { streams, bodyBudget, responseBudget })
    if (node.simulator) mountSimulator(app, node.simulator, watcher.hint)
    const guides = products.map(({ guide }) => guide)
    mountText(app, '/llms.txt', () => llmsText({ baseUrl: publicUrl(), isSimulator, guides }))
    pages.mount(app)
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
            log: paymentLog,
            publicUrl,
            quoteSeconds: config.quoteSeconds,
          })
        : null
    if (gate) {
      closing.push(gate.close)
      await refuseForeignOrders(gate.service.foreign(), config)
    }

    const scrapes = metrics && (await openScrapes(metrics, config))
    if (scrapes) closing.push(scrapes.close)
    await app.listen({ host: config.host, port: config.port })
    const purging = (name: string, work: (now: DeletionTime) => Promise<void>, facts: object) =>
      every(
        PURGE_EVERY_MS,
        () => inTurn(`${name}.purge`, PURGE_EVERY_MS, async () => work(await deletion.now())),
        (error) => log.error({ ...facts, err: error }),
      )
    const purges = products.map(({ product, purge }) =>
      purging(
        product,
        async (now) => {
          const gone = await purge(now)
          if (gone > 0) log.info({ event: 'product.purged', product, gone })
          metrics?.purged(product, gone)
        },
        { event: 'product.purge_failed', product },
      ),
    )
    if (gate) {
      const purge = async (now: DeletionTime): Promise<void> => void (await gate.service.purge(now))
      purges.push(purging('gate', purge, { event: 'gate.purge_failed' }))
    }
    // Their windows end by the machine's own time, so a clock that is doubted ends none.
    const forgetLimits = async (now: DeletionTime): Promise<void> => {
      if (now !== NOTHING_IS_OVER) await instances.purge()
    }
    purges.push(
      purging('limits', forgetLimits, { event: 'limits.purge_failed' }),
      every(BEAT_EVERY_MS, deletion.beat, (error) =>
        log.error({ event: 'clock.beat_failed', reason: String(error) }),
      ),
    )
    watcher.start(stopping.signal)
    const { port } = app.server.address() as AddressInfo
    url = `http://${hostInUrl(config.host)}:${port}`
    log.info({ event: 'listening', url })
    if (scrapes) log.info({ event: 'metrics.listening', url: scrapes.url })

    return {
      url,
      async stop() {
        // Balancers learn of it while everything is still served.
        isStopping = true
        if (config.drainSeconds > 0) await delay(config.drainSeconds * 1000)
        stopping.abort()
        await app.close()
        await Promise.all(purges.map((purging) => purging.stop()))
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

/** Where the metrics are served, with the port that was picked. */
async function openScrapes(
  metrics: Metrics,
  { metricsHost: host, metricsPort }: Config,
): Promise<MetricsListener & { url: string }> {
  try {
    const listener = await listenForScrapes(metrics, { host, port: metricsPort ?? 0 })
    return { ...listener, url: `http://${hostInUrl(host)}:${listener.port}/metrics` }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new ConfigError(
      `MAYFLY_METRICS_HOST and MAYFLY_METRICS_PORT must name a free address of this machine (${code}).`,
    )
  }
}

/** The databases that are configured, or else the ones that are installed. */
async function openLocator(config: Config, log: Logger): Promise<IpLocator> {
  const files = config.geoipDatabase.length > 0 ? config.geoipDatabase : installedDatabases()
  try {
    return await openIpLocator(files, (file, error) => {
      log.error({ event: 'geoip.reload_failed', file, reason: String(error) })
    })
  } catch (error) {
    const reason = messageOf(error)
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

/** This service speaks plain HTTP: where its public address does not, something stands in front. */
function isBehindTls({ baseUrl }: Config): boolean {
  return baseUrl?.startsWith('https:') ?? false
}

/** A server on all addresses is reached on this machine by the loopback one. */
function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

/** Without its secret, a repeat of an order would not find it, and its buyer would pay again. */
async function refuseForeignOrders(foreign: Promise<number>, config: Config): Promise<void> {
  const orders = await foreign
  if (orders === 0) return
  throw new ConfigError(
    `The secret in ${secretSource(config)} is not the one that ${orders} open or uncollected ${orders === 1 ? 'order was' : 'orders were'} made under. ` +
      (config.secrets === null
        ? 'Restore the secret that belongs to this store.'
        : 'Set that secret, or add it after a comma.'),
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
