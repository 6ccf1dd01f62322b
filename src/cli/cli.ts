/** What every client command is given: the settings, the ways to speak, and how it is ended. */
import { styleText } from 'node:util'
import type { Command } from 'commander'
import { createMayfly, type Mayfly } from '../client/index.ts'
import { readOptions } from '../config.ts'
import { systemClock } from '../lib/clock.ts'
import { dataFolder } from './data-folder.ts'
import { CliError, EXIT, endingOf } from './exit.ts'
import { harmless, STEERING } from './text.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

export type Cli = {
  /** The service that is talked to where a capability does not name its own. */
  url: string
  maxSats: number
  /** MAYFLY_WALLET_URL: a secret. */
  walletUrl: string | null
  /** Where capabilities are kept. */
  folder: string
  /** Answers go to programs: `--json`, or stdout is no terminal. */
  isJson: boolean
  /** `--json` was given: programs want it even where bytes would be piped. */
  isJsonAsked: boolean
  /** Aborted by the first SIGINT or SIGTERM. */
  signal: AbortSignal
  /** From here on signals are the listener's to answer, and abort nothing. */
  onSignal(listener: (signal: NodeJS.Signals) => void): void
  now(): number
  mayfly(baseUrl?: string): Mayfly
  /** The answer, once or in lines: JSON for programs, text for people. */
  answer(json: unknown, text: string): void
  /** A sentence beside the answer, on stderr. */
  note(sentence: string): void
  /** Text in a style, where the terminal that it goes to shows styles. */
  paint(style: Style, text: string, stream?: NodeJS.WriteStream): string
}

export type GlobalOptions = { url?: string; json?: true; color: boolean; maxSats?: string }

/** A command's work: its exit code, or nothing for 0. `args` are the positional arguments. */
export type Work<Options> = (
  cli: Cli,
  options: Options,
  ...args: string[]
) => Promise<number | undefined>

/** The action of a client command: opens what it needs, and ends with a code and a sentence. */
export function client<Options = object>(work: Work<Options>) {
  return async function action(this: Command): Promise<void> {
    const options = this.optsWithGlobals<GlobalOptions & Options>()
    process.exitCode = await run(options, (cli) => work(cli, options, ...this.args))
  }
}

/** A whole number of an option. @throws CliError that names the option. */
export function wholeNumber(name: string, text: string, least: number, most: number): number {
  const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw new CliError(`${name} must be a whole number from ${least} to ${most}.`, EXIT.usage)
}

async function run(
  options: GlobalOptions,
  work: (cli: Cli) => Promise<number | undefined>,
): Promise<number> {
  const interruption = new AbortController()
  let answerSignal = (_signal: NodeJS.Signals): void => {
    if (interruption.signal.aborted) process.exit(EXIT.interrupted)
    interruption.abort()
  }
  const signalled = (signal: NodeJS.Signals): void => answerSignal(signal)
  for (const name of SIGNALS) process.on(name, signalled)
  // The service that was talked to last, for the sentence that says that it does not answer.
  const asked = { url: '' }
  try {
    const cli = openCli(options, asked, interruption.signal, (listener) => {
      answerSignal = listener
    })
    return (await work(cli)) ?? EXIT.ok
  } catch (error) {
    if (interruption.signal.aborted && isAbort(error, interruption.signal)) return EXIT.interrupted
    const ending = endingOf(error, asked.url)
    if (ending === null) throw error
    process.stderr.write(`${harmless(ending.sentence, { lines: true })}\n`)
    if (options.json) {
      process.stdout.write(`${spelled(JSON.stringify({ error: ending.sentence }))}\n`)
    }
    return interruption.signal.aborted ? EXIT.interrupted : ending.code
  } finally {
    for (const name of SIGNALS) process.off(name, signalled)
  }
}

const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']

function openCli(
  options: GlobalOptions,
  asked: { url: string },
  signal: AbortSignal,
  onSignal: Cli['onSignal'],
): Cli {
  const settings = readOptions(['url', 'walletUrl', 'maxSats'])
  const url = options.url === undefined ? settings.url : serviceUrl(options.url)
  asked.url = url
  const maxSats =
    options.maxSats === undefined
      ? settings.maxSats
      : wholeNumber('--max-sats', options.maxSats, 0, 100_000_000)
  const isJson = options.json ?? !process.stdout.isTTY
  return {
    url,
    maxSats,
    walletUrl: settings.walletUrl,
    folder: dataFolder(),
    isJson,
    isJsonAsked: options.json ?? false,
    signal,
    onSignal,
    now: systemClock.now,
    mayfly(baseUrl = url) {
      asked.url = baseUrl
      return createMayfly({ baseUrl, maxSats })
    },
    answer(json, text) {
      process.stdout.write(isJson ? `${spelled(JSON.stringify(json))}\n` : text)
    },
    note(sentence) {
      process.stderr.write(`${harmless(sentence, { lines: true })}\n`)
    },
    paint(style, text, stream = process.stdout) {
      return options.color ? styleText(style, text, { stream }) : text
    },
  }
}

/** On a terminal, JSON too has every character spelled out that could steer it. */
const spelled = (json: string): string =>
  process.stdout.isTTY ? json.replace(STEERING, escaped) : json

const escaped = (character: string): string =>
  [...Array(character.length).keys()]
    .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`)
    .join('')

function serviceUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/'
  if (!isPlain || url.search + url.hash + url.username + url.password !== '') {
    throw new CliError('--url must be an http or https URL without a path.', EXIT.usage)
  }
  return url.origin
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === 'AbortError')
}
