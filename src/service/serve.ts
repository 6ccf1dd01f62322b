/**
 * The wiring, in this place only: configuration → store → Lightning → payment → products → HTTP. It decides
 * the order in which the parts start, and stops them in reverse.
 */
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { LOOK_EVERY_MS } from '../alerts/alerts.ts'
import type { Inboxes } from '../alerts/send.ts'
import { BEAT_EVERY_MS, databaseTime, openClock, type ServiceClock } from '../db/clock.ts'
import { measuredDb } from '../db/measured.ts'
import { openStore } from '../db/open.ts'
import { noticeOf } from '../discovery/announced.ts'
import { mountDiscovery } from '../discovery/discovery.ts'
import { type AppOptions, createApp } from '../http/app.ts'
import { clientNetwork, createClientAddress, detectUnknownClients } from '../http/client-address.ts'
import { createLimits } from '../http/limits.ts'
import { createMemory } from '../http/memory.ts'
import { mountOpenapi } from '../http/openapi/openapi.ts'
import { createPages } from '../http/pages/pages.ts'
import { mountCatalog } from '../http/paid/catalog.ts'
import { createNewOrders } from '../http/paid/new-orders.ts'
import { mountPayments } from '../http/paid/poll.ts'
import type { Repeated } from '../http/product.ts'
import { createConnections } from '../http/server/connections.ts'
import { mountHealth, mountReadiness } from '../http/server/health.ts'
import { measureRequests } from '../http/server/metrics.ts'
import { createLocalOnly, mountSimulator } from '../http/server/simulator.ts'
import { createEventStreams } from '../http/streams.ts'
import { createScheduler } from '../http/turns.ts'
import { type SteadyClock, systemClock } from '../lib/clock.ts'
import { measuredLightning } from '../lightning/measured.ts'
import { CURSORS, openLightning } from '../lightning/open.ts'
import { createL402Flow } from '../payment/flows/l402.ts'
import { createPaymentFlow } from '../payment/flows/payment-auth.ts'
import { createNodeHealth } from '../payment/health.ts'
import { createOrders } from '../payment/orders.ts'
import { purgeSales } from '../payment/sales.ts'
import { createWatcher } from '../payment/watcher.ts'
import { createSecrets } from '../secrets/secrets.ts'
import { createSwitches } from '../switches/switches.ts'
import { mountMcp } from '../tools/remote/endpoint.ts'
import { createPurchaseIds } from '../tools/remote/purchase-id.ts'
import { type Config, hostInUrl } from './config.ts'
import { createExchangeRate, RATE_EVERY_MS } from './exchange-rate.ts'
import { CONNECTIONS_BESIDE_STORE, joinInstances } from './instances.ts'
import { createOnSale } from './on-sale.ts'
import { openAlerts } from './outbound-rules.ts'
import { PROVISIONINGS, productsOn, SOLD_FACTS, SURFACES } from './products.ts'
import { createReload, type Reload } from './reloading.ts'
import { reseal } from './reseal.ts'
import { openMetrics, openScrapes } from './scrapes.ts'
import {
  asConfigError,
  isBehindTls,
  networkOf,
  readForStart,
  refuseForeignOrders,
} from './start-checks.ts'
import { noteNode } from './store-identity.ts'
import { machineTimer, purging, startWorks, type Timer } from './works.ts'

/** Added to each product's description in the catalogue while the simulator is the node. */
const SIMULATED = ' Simulator: no real money moves.'

export type Server = {
  /** The address on which it listens, with the actual port. */
  url: string
  /** Takes other plans and rates into use, or refuses both. */
  reload: Reload
  /** The one clock of the service. */
  clock: ServiceClock
  /** Stops accepting requests, finishes those under way, and closes everything. */
  stop(): Promise<void>
}

/** `clock` takes the place of the machine's and of the database's, `timer` of its timers. */
export type ServeOptions = {
  clock?: SteadyClock
  timer?: Timer
  timeouts?: AppOptions['timeouts']
}

/**
 * Starts the service.
 * @throws ConfigError or StoreUnusable with a sentence for the operator.
 */
export async function serve(
  config: Config,
  log: Logger,
  { clock: givenClock, timer = machineTimer, timeouts }: ServeOptions = {},
): Promise<Server> {
  const { listed, rates, ownSecrets } = readForStart(config)
  const onSale = createOnSale(listed)
  const products = productsOn(config)
  const clients = createClientAddress(config.trustedProxies, isBehindTls(config))
  const { clientAddress, isProxied, peerNetwork } = clients
  const stopping = new AbortController()
  let isStopping = false

  // With the metrics off, the parts below are used without their measuring wrappers.
  const metrics = config.metricsPort === null ? null : await openMetrics()
  const store = await openStore(config.databaseUrl, {
    besides: CONNECTIONS_BESIDE_STORE,
    onWaiting: (reason) => log.warn({ event: 'store.waiting', reason }),
    onMigrating: (name) => log.info({ event: 'store.migrating', name }),
  })
  const db = metrics ? measuredDb(store, metrics.store) : store
  /** Closed in reverse order. */
  const closing: (() => Promise<void>)[] = [db.close]
  const closeAll = async (): Promise<void> => {
    for (const close of closing.toReversed()) await close()
  }
  try {
    // After the store, so that a start which the store refuses leaves no secret behind.
    const secrets = createSecrets(await ownSecrets(db))
    const warn = (reason: string): void => log.warn({ event: 'lightning.warning', reason })
    const machine = givenClock ?? systemClock
    const hasOwnTime = db.engine === 'postgres' && givenClock === undefined
    const clock = await openClock({
      db,
      machine,
      log,
      readTime: hasOwnTime
        ? databaseTime(db, machine.monotonic)
        : async () => ({ at: machine.now(), monotonic: machine.monotonic() }),
      onReanchor: metrics?.clockReanchored ?? (() => undefined),
    })
    closing.push(clock.close)
    const node = await asConfigError(() =>
      openLightning(config.lightningUrl.url, { db, clock, warn }),
    )
    closing.push(node.close)
    const lightning = metrics ? measuredLightning(node.lightning, metrics.node) : node.lightning
    const paymentLog = metrics ? metrics.countedLog(log) : log
    const network = await networkOf(node, config, db)
    const nodeHealth = createNodeHealth({
      lightning,
      network,
      log,
      noteNode: (nodeId) => noteNode(db, nodeId, Object.values(CURSORS)),
    })
    const health = {
      ...nodeHealth,
      isHealthy: () => nodeHealth.isHealthy() && !clock.hasGoneBack(),
    }
    const instances = await joinInstances(config.databaseUrl, { db, secrets, clock, log })
    closing.push(instances.close)
    const { hints, inTurn } = instances
    const scheduler = createScheduler()
    const orders = createOrders({
      db,
      lightning,
      health,
      secrets,
      clock,
      log: paymentLog,
      products: PROVISIONINGS,
      quoteSeconds: config.quoteSeconds,
      onExtended: hints.notify,
    })
    await reseal({ db, secrets, log })
    await refuseForeignOrders(orders.foreign(), config)
    await health.start(stopping.signal)
    const watcher = createWatcher({ db, lightning, orders, clock, inTurn, log })

    /** Empty until the port is known. */
    let url = ''
    const publicUrl = (): string => config.baseUrl ?? url
    const isSimulator = node.simulator !== null
    const has = new Set(products.map(({ facts }) => facts.name))
    const { termsUrl, privacyUrl, contact } = config
    const operator = { termsUrl, privacyUrl, contact }
    const rate =
      config.rateSource &&
      createExchangeRate(config.rateSource, { clock, log, stopping: stopping.signal })
    const pages = createPages({
      isSimulator,
      has,
      surfaces: SURFACES,
      operator,
      onSale: { edition: onSale.edition, plans: onSale.plansNamed },
      rate: () => rate?.current() ?? '',
    })
    const memory = createMemory((request) => clientNetwork(clientAddress(request.raw)))
    const connections = createConnections({ networkOf: peerNetwork })
    const app = await createApp({
      log,
      clock,
      connections,
      sendNotFoundPage: pages.sendNotFoundPage,
      surfaces: SURFACES,
      ...(timeouts ? { timeouts } : {}),
    })
    mountOpenapi(app, {
      publicUrl,
      notice: noticeOf({ isSimulator, network }),
      groups: Object.fromEntries(products.map(({ facts }) => [facts.name, facts.about])),
      operator,
      edition: onSale.edition,
    })
    const openingClient = detectUnknownClients(app, { ...clients, log })
    const streams = createEventStreams(app, memory)
    const limits = createLimits(rates, clientAddress, instances.openBucket)
    if (metrics) {
      const { response: observe, rateLimited: onRefused } = metrics
      measureRequests(app, { observe, isStream: streams.isStream, onRefused })
      const { isHealthy: isSelling } = health
      const { isHeld: isClockHeld } = clock
      metrics.watch({
        db: store,
        clock,
        isSelling,
        isClockHeld,
        streams: streams.countByRoute,
        memory,
        connections,
        searches: scheduler.count,
      })
    }
    const flows = {
      payment: createPaymentFlow({ keys: secrets.keys('payment challenge'), publicUrl }),
      l402: createL402Flow({ keys: secrets.keys('l402 root'), publicUrl, clock }),
    }
    const { blockedNetworks, egressNetworks } = config
    // Whoever names proxies, or makes the simulator public, means to give everything away.
    const isLocalOnly = config.simulator === 'local' && config.trustedProxies.length === 0
    const guard = node.simulator && isLocalOnly ? { refuseStrangers: createLocalOnly(log) } : {}
    const newOrders = createNewOrders({
      ...guard,
      db,
      clock,
      log,
      limits,
      clientAddress,
      blockedNetworks,
      egressNetworks,
      maxSales: { perDay: config.maxSalesPerDay, perNetwork: config.maxSalesPerNetworkPerDay },
    })
    const purchaseKeys = secrets.keys('mcp purchase')
    const isOwnKey = createPurchaseIds(purchaseKeys).isOwn
    const buyers = { clientAddress, openingClient, isOwnKey, newOrders }
    const paying = { orders, flows, ...buyers, limits, memory }
    mountHealth(app)
    mountReadiness(app, { db, clock, isNodeReady: health.isHealthy, isStopping: () => isStopping })
    mountCatalog(app, {
      health,
      limits,
      clientAddress,
      newOrders,
      entries: SOLD_FACTS.map((facts) => ({
        product: facts.name,
        schema: facts.catalog.schema,
        entry: {
          description: facts.about + (node.simulator ? SIMULATED : ''),
          ...facts.catalog.entry,
        },
        plans: onSale.plansOf(facts),
      })),
    })
    mountPayments(app, { ...paying, resources: SOLD_FACTS.map(({ capability }) => capability) })
    const parts = {
      ...paying,
      app,
      db,
      hints,
      inTurn,
      clock,
      secrets,
      network,
      publicUrl,
      isProxied,
      scheduler,
      switches: createSwitches({ db, clock }),
      streams,
      log: paymentLog,
      simulator: node.simulator,
      quoteSeconds: config.quoteSeconds,
    }
    let inboxes: Inboxes | null = null
    const alerts = await openAlerts(config, {
      db,
      secrets,
      clock,
      log,
      network,
      publicUrl,
      inboxes: () => inboxes,
      ...(metrics ? { onAttempt: metrics.alertTried } : {}),
    })
    closing.push(alerts.close)
    const works: Repeated[] = []
    const turns = { inTurn, clock }
    for (const { facts, open } of products) {
      const {
        purge,
        foreign,
        close,
        repeating = [],
        inboxes: lent = null,
      } = await asConfigError(async () => open(parts, { config, onSale, metrics, alerts }))
      inboxes ??= lent
      if (close) closing.push(close)
      if (foreign) await refuseForeignOrders(foreign(), config)
      const purgeAndLog = async (now: number): Promise<void> => {
        const gone = await purge(now)
        if (gone > 0) log.info({ event: 'product.purged', product: facts.name, gone })
        metrics?.purged(facts.name, gone)
      }
      const event = 'product.purge_failed'
      works.push(purging(facts.name, purgeAndLog, { ...turns, event }), ...repeating)
    }
    if (node.simulator) {
      mountSimulator(app, { simulator: node.simulator, onPaid: watcher.hint, ...guard })
    }
    if (config.mcp === 'on') {
      mountMcp(app, { publicUrl, clientAddress, limits, memory, clock, log, keys: purchaseKeys })
    }
    mountDiscovery(app, {
      publicUrl,
      clock,
      network,
      isSimulator,
      hasMcp: config.mcp === 'on',
      operator,
      products: SOLD_FACTS.map((facts) => ({ ...facts, plans: onSale.plansOf(facts) })),
      edition: onSale.edition,
      guides: products.map(({ facts }) => facts.guide),
    })
    pages.mount(app)
    const scrapes = metrics && (await openScrapes(metrics, config))
    if (scrapes) closing.push(scrapes.close)
    await app.listen({ host: config.host, port: config.port })
    works.push(
      purging('limits', instances.purge, turns),
      purging('alerts', alerts.purge, turns),
      purging('sales', (now) => purgeSales(db, { keptDays: config.salesKeptDays, now }), turns),
      { everyMs: LOOK_EVERY_MS, event: 'alerts.turn_failed', work: alerts.look },
      { everyMs: BEAT_EVERY_MS, event: 'clock.beat_failed', work: clock.beat },
    )
    if (rate) {
      works.push({ everyMs: RATE_EVERY_MS, event: 'exchange_rate.failed', work: rate.look })
      void rate.look()
    }
    const stopWorks = startWorks(works, { log, timer })
    watcher.start(stopping.signal)
    const { port } = app.server.address() as AddressInfo
    url = `http://${hostInUrl(config.host)}:${port}`
    log.info({ event: 'listening', url })
    if (scrapes) log.info({ event: 'metrics.listening', url: scrapes.url })

    return {
      url,
      clock,
      reload: createReload({ onSale, reloadRates: limits.reload, isSimulator, log }),
      async stop() {
        // Load balancers notice this while all requests are still served.
        isStopping = true
        if (config.drainSeconds > 0) await delay(config.drainSeconds * 1000)
        stopping.abort()
        await app.close()
        await stopWorks()
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
