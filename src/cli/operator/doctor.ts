/** `mayfly doctor`: checks everything that a service needs, and says what to do. */
import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { systemClock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { objectIn } from '../../lib/json.ts'
import { reasonOf } from '../../lib/reason.ts'
import { type Config, ConfigError, readConfig, serviceUrl } from '../../service/config.ts'
import { type Secrets, secretBeside, secretFile, USED } from '../../service/secret-file.ts'
import { EXIT } from '../exit.ts'
import { isForPrograms, openOutput } from '../output.ts'
import { columns } from '../text.ts'
import { operator } from './command.ts'
import {
  bad,
  checkContent,
  checkReaders,
  type Finding,
  type Given,
  inSqlite,
  NO_STORE,
  note,
  ok,
} from './doctor-store.ts'

/** How long the service and the node may take to answer. */
const ANSWER_MS = 10_000
/** The clock skew that does not matter to the expiry of capabilities, quotes and receipts. */
const MAX_SKEW_SECONDS = 30

export const addDoctor = operator({
  command: 'doctor',
  says: 'check the settings, the store, the node, the clocks and the addresses of a service',
  examples: ['mayfly doctor'],
  async run(options) {
    const findings = await examine()
    const rows = findings.map(({ check, state, says }) => [MARKS[state], check, says])
    // Monitoring reads this one through a pipe, and gets JSON there.
    openOutput(options, isForPrograms(options)).answer(findings, columns(rows))
    return findings.some(({ state }) => state === 'bad') ? EXIT.failed : EXIT.ok
  },
})

const MARKS = { ok: 'ok', note: 'note', bad: 'BAD' }

async function examine(): Promise<Finding[]> {
  let config: Config
  try {
    config = readConfig()
    const { asConfigError, readForStart } = await import('../../service/start-checks.ts')
    const { openLocations } = await import('../../catch/ip-location.ts')
    readForStart(config)
    await asConfigError(() => openLocations(config.geoipDatabase, () => undefined))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return [bad('configuration', error.message)]
  }
  const service = await checkService(config)
  const isServed = service.some(({ check, state }) => check === 'service' && state === 'ok')
  const secret = await readSecret(config)
  const store = await Array.fromAsync(checkStore({ config, secrets: secret.secrets, isServed }))
  // What the store says of the secret is more than that there is one.
  const isForeign = store.some(({ check }) => check === 'secret')
  return [
    ok('configuration', 'a start takes every MAYFLY_ setting'),
    ...store,
    ...(isForeign ? [] : [secret.finding]),
    await checkNode(config),
    checkProxies(config),
    checkOutbound(config),
    ...(await checkPublicAddress(config)),
    ...service,
  ]
}

/** Servers of strangers see where a request comes from. */
function checkOutbound({ outbound, outboundProxy, gate, baseUrl }: Config): Finding {
  if (outbound === 'off' && gate === 'off') return ok('outbound', 'nothing is sent to strangers')
  if (outboundProxy !== null) return ok('outbound', 'strangers see the address of the proxy')
  const says =
    'the receivers of alerts see the address of this machine. MAYFLY_OUTBOUND_PROXY hides it, and MAYFLY_OUTBOUND=off sends none'
  return baseUrl === null ? ok('outbound', says) : note('outbound', says)
}

async function* checkStore(given: Given): AsyncGenerator<Finding> {
  const { databaseUrl, secrets } = given.config
  if (databaseUrl.kind === 'sqlite') {
    const file = resolve(databaseUrl.file)
    const found = await checkFile(file)
    yield found
    if (found.state !== 'ok') return
    yield* checkReaders([file, ...(secrets === null ? [secretFile(file)] : [])])
    yield* await inSqlite(file, (db) => checkContent(db, given))
    return
  }
  try {
    const { openPostgres } = await import('../../db/postgres/postgres.ts')
    const db = await inTime(openPostgres(databaseUrl.url, { startWithinMs: 0 }))
    try {
      await inTime(db.read('select 1 as one'))
      const content = await inTime(checkContent(db, given))
      yield* [ok('store', 'PostgreSQL answers'), ...content]
    } finally {
      await db.close()
    }
  } catch (error) {
    yield bad('store', messageOf(error))
  }
}

async function checkFile(file: string): Promise<Finding> {
  if (!existsSync(file)) {
    const folder = nearest(dirname(file))
    return isWritable(folder)
      ? note('store', `${file} does not exist yet. \`mayfly serve\` creates it`)
      : bad(
          'store',
          `${folder} cannot be written to. Give this user the permission, or set MAYFLY_DATABASE_URL`,
        )
  }
  if (!isWritable(dirname(file)) || !isAllowed(file, constants.R_OK | constants.W_OK)) {
    return bad('store', `${file} is read-only. Make it and its folder writable for this user`)
  }
  try {
    const [row] = await inSqlite(file, (db) => db.read('pragma quick_check(1)'))
    const verdict = String(Object.values(row ?? {})[0])
    if (verdict === 'ok') return ok('store', `${file} is sound`)
    const says = `${file} is damaged (${verdict.replaceAll('\n', ' ')}). Restore a backup of it`
    return bad('store', says)
  } catch (error) {
    return bad('store', `${file} cannot be read: ${messageOf(error)}`)
  }
}

type Secret = { secrets: Secrets | null; finding: Finding }

/** The secret that a start would use, without which a backup of the store is useless. */
async function readSecret({ secrets, databaseUrl }: Config): Promise<Secret> {
  if (secrets !== null || databaseUrl.kind !== 'sqlite') {
    return { secrets, finding: ok('secret', 'MAYFLY_SECRET is set') }
  }
  const database = resolve(databaseUrl.file)
  const file = secretFile(database)
  if (!existsSync(file) && !(await hasOrders(database))) {
    const says = `${file} does not exist yet. \`mayfly serve\` creates it`
    return { secrets: null, finding: note('secret', says) }
  }
  try {
    const secrets: Secrets = [secretBeside(database, { isStoreUsed: true })]
    return { secrets, finding: ok('secret', `it is in ${file}: keep a copy of it elsewhere`) }
  } catch (error) {
    return { secrets: null, finding: bad('secret', messageOf(error)) }
  }
}

/** Whether the store has orders. False if it is unreadable, which is another finding. */
const hasOrders = (file: string): Promise<boolean> =>
  inSqlite(file, async (db) => (await db.read(USED)).length > 0).catch(() => false)

async function checkNode({ lightningUrl, network }: Config): Promise<Finding> {
  if (lightningUrl.kind === 'simulator') {
    return note(
      'node',
      'the simulator: no real money moves. Set MAYFLY_LIGHTNING_URL to use a real node',
    )
  }
  try {
    const { openLightning } = await import('../../lightning/open.ts')
    const opened = await openLightning(lightningUrl.url, {
      db: NO_STORE,
      clock: systemClock,
      warn: () => undefined,
    })
    try {
      if (opened.problem) return bad('node', opened.problem.sentence)
      const { network: its, synced } = await inTime(opened.lightning.info())
      if (network !== null && network !== its) {
        return bad('node', `it is on ${its}, and MAYFLY_NETWORK says ${network}`)
      }
      return synced
        ? ok('node', `it answers, in sync, on ${its}`)
        : bad('node', `it is not in sync with ${its} yet. Sales wait until it is`)
    } finally {
      await opened.close()
    }
  } catch (error) {
    return bad('node', messageOf(error))
  }
}

/** The service speaks plain HTTP, so an https address means a proxy, which must be trusted. */
function checkProxies({ baseUrl, trustedProxies }: Config): Finding {
  if (trustedProxies.length > 0) {
    return ok('proxies', `${trustedProxies.join(', ')} may name the client`)
  }
  return baseUrl?.startsWith('https:')
    ? bad(
        'proxies',
        'MAYFLY_BASE_URL is https, so there is a proxy in front, but none is trusted: all clients look like one. Set MAYFLY_TRUSTED_PROXIES to its address',
      )
    : note('proxies', 'none is trusted. If there is one in front, set MAYFLY_TRUSTED_PROXIES')
}

const ask = (url: string): Promise<Response> =>
  fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) })

/** Whether the public address leads to a Mayfly. Some networks cannot reach their own public address. */
async function checkPublicAddress({ baseUrl }: Config): Promise<Finding[]> {
  if (baseUrl === null) return []
  try {
    const answer = await ask(`${baseUrl}/health`)
    return objectIn(await answer.text())?.service === 'mayfly'
      ? [ok('public address', `${baseUrl} leads to a Mayfly`)]
      : [bad('public address', `${baseUrl} answers, but not as Mayfly. Look at the proxy in front`)]
  } catch (error) {
    const why = reasonOf(error) ?? 'there is no answer'
    const says = `${baseUrl} does not answer from this machine: ${why}. Try it from elsewhere: DNS, certificate, firewall and the proxy lead to it`
    return [note('public address', says)]
  }
}

async function checkService(config: Config): Promise<Finding[]> {
  const url = serviceUrl(config)
  try {
    const asked = Date.now()
    const response = await ask(`${url}/api/catalog`)
    const theirs = Date.parse(response.headers.get('date') ?? '')
    return [serviceSays(url, objectIn(await response.text()) ?? {}), checkClock(theirs, asked)]
  } catch (error) {
    const why = reasonOf(error) ?? 'there is no answer'
    const says = `${url} does not answer: ${why}. Start it with \`mayfly serve\`, or set MAYFLY_URL`
    return [note('service', says), checkClock(Number.NaN, Date.now())]
  }
}

function serviceSays(url: string, { checkoutEnabled, error }: Record<string, unknown>): Finding {
  if (checkoutEnabled === true) return ok('service', `${url} answers and can sell`)
  if (checkoutEnabled === false) {
    return bad(
      'service',
      `${url} answers but cannot sell. Its log says what is wrong with its node`,
    )
  }
  if (error === 'rate limited') {
    return note('service', `${url} answers, but was asked too often. Try again in a minute`)
  }
  return bad(
    'service',
    `${url} is another program's. Set MAYFLY_PORT to another port, or MAYFLY_URL to another service`,
  )
}

function checkClock(theirs: number, ours: number): Finding {
  if (Number.isNaN(theirs)) return note('clock', 'there is no service to compare it with')
  const skew = Math.round(Math.abs(theirs - ours) / 1000)
  return skew <= MAX_SKEW_SECONDS
    ? ok('clock', 'it agrees with the clock of the service')
    : bad('clock', `it differs from the clock of the service by ${skew} s. Synchronize it with NTP`)
}

function inTime<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = new Error('it does not answer')
    const timer = setTimeout(() => reject(late), ANSWER_MS)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** The folder, or its nearest existing parent. */
function nearest(folder: string): string {
  const above = dirname(folder)
  return existsSync(folder) || above === folder ? folder : nearest(above)
}

const isWritable = (folder: string): boolean => isAllowed(folder, constants.W_OK | constants.X_OK)

function isAllowed(path: string, what: number): boolean {
  try {
    accessSync(path, what)
    return true
  } catch {
    return false
  }
}
