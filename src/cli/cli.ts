/** The context of a client's command: settings, output, SDK and signals. */
import { createMayfly, type Mayfly, type PurchaseStore } from '../client/index.ts'
import { systemClock } from '../lib/clock.ts'
import { serviceOrigin } from '../lib/service-origin.ts'
import { readOptions, serviceUrl } from '../service/config.ts'
import { dataFolder } from './data-folder.ts'
import {
  type Add,
  type Declared,
  declare,
  type Given,
  type GlobalOptions,
  type Nothing,
  type Takes,
} from './declare.ts'
import { anyEnding, type Ending, EXIT, misuse } from './exit.ts'
import { finish, isForPrograms, openOutput, printDebug } from './output.ts'
import { traced } from './trace.ts'

export type Cli = ReturnType<typeof openCli>

/** A client's command. Its work resolves to its exit code, or to anything else for 0. */
export const client =
  <const T extends Takes = Nothing>(
    declared: Declared<T> & { run(cli: Cli, given: Given<T>): Promise<unknown> },
  ): Add =>
  (parent) =>
    declare<T>(parent, declared, async (given) => {
      process.exitCode = await run(given, (cli) => declared.run(cli, given))
    })

/** Runs the work. The first signal aborts it, the second ends the process immediately. */
async function run(options: GlobalOptions, work: (cli: Cli) => Promise<unknown>): Promise<number> {
  const interruption = new AbortController()
  const { signal } = interruption
  const onSignal = (): void => {
    if (signal.aborted) process.exit(EXIT.interrupted)
    interruption.abort()
  }
  for (const name of SIGNALS) process.on(name, onSignal)
  // The service of the last request, for the error message if it does not answer.
  const lastAsked = { url: '' }
  const explain = (error: unknown): Ending => {
    if (signal.aborted && isAbort(error, signal)) return { code: EXIT.interrupted, sentence: '' }
    const ending = anyEnding(error, lastAsked.url)
    return signal.aborted ? { ...ending, code: EXIT.interrupted } : ending
  }
  try {
    return await finish(options, () => work(openCli(options, { signal, lastAsked })), explain)
  } finally {
    for (const name of SIGNALS) process.off(name, onSignal)
  }
}

const URL_SETTINGS = ['url', 'host', 'port'] as const

const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']

function openCli(
  options: GlobalOptions,
  { signal, lastAsked }: { signal: AbortSignal; lastAsked: { url: string } },
) {
  const settings = readOptions([...URL_SETTINGS, 'walletUrl', 'maxSats', 'maxSatsPerDay'])
  const url = options.url === undefined ? serviceUrl(settings) : givenUrl('--url', options.url)
  const { maxSats = settings.maxSats } = options
  lastAsked.url = url
  const trace = (fetch: typeof globalThis.fetch): typeof globalThis.fetch =>
    options.debug ? traced(fetch, printDebug) : fetch
  const mayflyAt = (baseUrl: string, store?: PurchaseStore): Mayfly => {
    lastAsked.url = baseUrl
    return createMayfly({ baseUrl, maxSats, fetch: trace(globalThis.fetch), store })
  }
  return {
    ...openOutput(options, isForPrograms(options)),
    /** The service to talk to, unless a capability names its own. */
    url,
    maxSats,
    /** The most that the wallet may pay on one UTC day, fees included. */
    maxSatsPerDay: settings.maxSatsPerDay,
    /** MAYFLY_WALLET_URL: a secret. */
    walletUrl: settings.walletUrl,
    /** The folder with the saved capabilities. */
    folder: dataFolder(),
    /** Whether `--json` was given. It asks for JSON even if the command would pipe bytes. */
    isJsonAsked: options.json ?? false,
    /** Aborted by the first SIGINT or SIGTERM. */
    signal,
    now: systemClock.now,
    /** With `--debug`, a fetch that tells of each request; else the same. */
    traced: trace,
    /** The SDK's client of any service, whatever `--url` says; with a store for what it buys. */
    mayflyAt,
    /** The same. What is saved names its service, and no `--url` sends its tokens to another one. @throws CliError */
    mayfly(baseUrl = url, store?: PurchaseStore): Mayfly {
      const by = options.url === undefined ? 'MAYFLY_URL' : '--url'
      const isGiven = options.url !== undefined || settings.url !== null
      if (isGiven && !isSameService(baseUrl, url)) {
        throw misuse(
          `That is of ${baseUrl}, and ${by} says ${url}, so nothing was sent. Use --url ${baseUrl}. If the service has moved: mayfly move <name> --to ${url}`,
        )
      }
      return mayflyAt(baseUrl, store)
    },
  }
}

export const isSameService = (one: string, other: string): boolean =>
  new URL(one).href === new URL(other).href

/** The address of a service. @throws CliError that names the option. */
export function givenUrl(option: string, text: string): string {
  const origin = serviceOrigin(text)
  if (origin === null) throw misuse(`${option} must be an http or https URL without a path.`)
  return origin
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === 'AbortError')
}
