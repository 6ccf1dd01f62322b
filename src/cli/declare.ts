/** How a command is declared: what it takes, in the words that its help shows. Its types follow, and completion. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { helpText } from './text.ts'

/** In place of a default: the option must be given. */
export const NEEDED = Symbol()

/** How a text is read, or its choices. */
type How = ((text: string, before: never) => unknown) | readonly string[]

/** The help of an argument or an option, how it is read, and its default. */
type Taken = string | readonly [says: string, how: How, byDefault?: unknown]

/** The arguments and options of a command, by their flags. */
export type Takes = Readonly<Record<string, Taken>>

/** What was given, by its name: `--time-zone <name>` is `timeZone`. */
export type Given<T extends Takes> = {
  [F in keyof T as F extends Sure<T> ? NameIn<F> : never]: ValueOf<F, T[F]>
} & {
  [F in keyof T as F extends Sure<T> ? never : NameIn<F>]?: ValueOf<F, T[F]>
}

/** The flags of what is always there. */
type Sure<T extends Takes> = {
  [F in keyof T]: F extends `<${string}`
    ? F
    : T[F] extends readonly [string, How, unknown]
      ? F
      : never
}[keyof T]

type NameIn<F> = F extends `--no-${infer W}`
  ? Camel<W>
  : F extends `--${infer W}`
    ? Camel<FirstWord<W>>
    : F extends `<${infer W}>` | `[${infer W}...]` | `[${infer W}]`
      ? Camel<W>
      : never

type FirstWord<W extends string> = W extends `${infer A} ${string}` ? A : W

type Camel<W extends string> = W extends `${infer A}-${infer B}` ? `${A}${Capitalize<Camel<B>>}` : W

type ValueOf<F, T> = T extends readonly [string, infer H, ...unknown[]]
  ? H extends (text: string, before: never) => infer V
    ? V
    : H extends readonly (infer C)[]
      ? C
      : never
  : F extends `${string}...${'>' | ']'}`
    ? string[]
    : F extends `--no-${string}`
      ? false
      : F extends `${string}>` | `[${string}`
        ? string
        : true

/** Of a command that takes nothing. */
export type Nothing = Record<never, never>

export type Declared<T extends Takes> = {
  command: string
  says: string
  takes?: T
  examples?: readonly string[]
  /** What else its help says. */
  notes?: string
  isHidden?: boolean
}

/** Adds a command to its parent: the program, or a group. */
export type Add = (parent: Command) => Command

/** Adds a command. @param act gets what was given, with the options of all commands. */
export function declare<T extends Takes>(
  parent: Command,
  { command: name, says, takes, examples, notes, isHidden = false }: Declared<T>,
  act?: (given: Given<T> & GlobalOptions) => Promise<void> | void,
): Command {
  const command = parent.command(name, { hidden: isHidden }).description(says)
  if (takes) take(command, takes)
  if (examples) command.addHelpText('after', helpText(examples, notes))
  if (act) {
    command.action(() => {
      const given: unknown = { ...argumentsOf(command), ...command.optsWithGlobals() }
      return act(given as Given<T> & GlobalOptions)
    })
  }
  return command
}

/** Lets a command take these. */
export function take(command: Command, takes: Takes): void {
  for (const [flags, taken] of Object.entries(takes)) {
    const [says, how, byDefault] = typeof taken === 'string' ? [taken] : taken
    const one = flags.startsWith('--') ? new Option(flags, says) : new Argument(flags, says)
    if (typeof how === 'function') one.argParser(how as (text: string) => unknown)
    else if (how !== undefined) one.choices(how)
    if (byDefault !== undefined && byDefault !== NEEDED) one.default(byDefault)
    if (one instanceof Argument) command.addArgument(one)
    else command.addOption(one.makeOptionMandatory(byDefault === NEEDED))
  }
}

const argumentsOf = ({ registeredArguments, processedArgs }: Command): object =>
  Object.fromEntries(
    registeredArguments.map((argument, i) => [camel(argument.name()), processedArgs[i]]),
  )

const camel = (name: string): string =>
  name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())

/** A command that stands for several. */
export const group =
  (declared: Declared<Nothing>, commands: readonly Add[]): Add =>
  (parent) => {
    const command = declare(parent, declared)
    for (const add of commands) add(command)
    return command
  }

/** Reads a whole number of this range. */
export const whole =
  (least: number, most: number) =>
  (text: string): number => {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (number >= least && number <= most) return number
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }

/** The options of every command. */
export const COMMON = {
  '--url <url>': 'the service (MAYFLY_URL, or http://127.0.0.1:8402, with MAYFLY_PORT if set)',
  '--max-sats <sats>': [
    'the highest price to pay (MAYFLY_MAX_SATS, or 1000)',
    whole(0, 100_000_000),
  ],
  '--json': 'answer in JSON; the default if stdout is not a terminal',
  '--quiet': 'print only answers and errors',
  '--debug': 'log each request and its outcome on stderr, without secrets',
} as const

export type GlobalOptions = Given<typeof COMMON>
