/** The command line: all commands and their common options. The list in docs/cli.md is generated from it. */
import { Command, CommanderError } from 'commander'
import { type Add, whole } from './declare.ts'
import { EXIT, EXIT_MEANINGS, endingOf, manifest } from './exit.ts'
import { helpText } from './text.ts'

/** The file of some commands, which is loaded only to run one of them or to describe them all. */
type Part = {
  /** The commands for which this part alone is enough. */
  names: readonly string[]
  load(): Promise<Add | readonly Add[]>
}

/** In the order of the help. */
const OF_CLIENTS: readonly Part[] = [
  { names: ['buy'], load: async () => (await import('./buy.ts')).addBuy },
  { names: ['extend'], load: async () => (await import('./extension.ts')).addExtend },
  { names: ['recover'], load: async () => (await import('./recover.ts')).addRecover },
  { names: ['catalog'], load: async () => (await import('./catalog.ts')).addCatalog },
  {
    names: ['list', 'show', 'open', 'move', 'destroy'],
    load: async () => (await import('./saved-commands.ts')).savedCommands,
  },
  { names: ['status'], load: async () => (await import('./status.ts')).addStatus },
  { names: ['alerts'], load: async () => (await import('./alerts.ts')).addAlerts },
  { names: ['forget'], load: async () => (await import('./forget.ts')).addForget },
  {
    names: ['export', 'import'],
    load: async () => (await import('./export.ts')).exportAndImport,
  },
  { names: ['catch'], load: async () => (await import('./catch/catch.ts')).addCatch },
  { names: ['whisper'], load: async () => (await import('./whisper/whisper.ts')).addWhisper },
  { names: ['pulse'], load: async () => (await import('./pulse/pulse.ts')).addPulse },
  { names: ['ping'], load: async () => (await import('./pulse/pulse.ts')).addPing },
  { names: ['pay'], load: async () => (await import('./pay.ts')).addPay },
  { names: ['mcp'], load: async () => (await import('./mcp.ts')).addMcp },
  { names: ['budget'], load: async () => (await import('./budget.ts')).addBudget },
  {
    names: ['completion', 'complete'],
    load: async () => (await import('./completion.ts')).completion,
  },
]

const OF_OPERATORS: readonly Part[] = [
  { names: ['serve'], load: async () => (await import('./operator/serve.ts')).addServe },
  { names: ['doctor'], load: async () => (await import('./operator/doctor.ts')).addDoctor },
  { names: ['order'], load: async () => (await import('./operator/order.ts')).addOrder },
  { names: ['sales'], load: async () => (await import('./operator/sales.ts')).addSales },
  {
    names: ['takedown'],
    load: async () => (await import('./operator/takedown.ts')).addTakedown,
  },
  { names: ['gate'], load: async () => (await import('./operator/gate.ts')).addGate },
  {
    names: ['backup', 'restore'],
    load: async () => (await import('./operator/backup.ts')).backupAndRestore,
  },
]

/** Runs one command, and resolves to its exit code. */
export async function runProgram(args: string[]): Promise<number> {
  // Commander's own `help` supports only one level of commands.
  const asked = args[0] === 'help' ? args.slice(1).filter((name) => !name.startsWith('-')) : null
  if (args[0] !== 'serve') allowEarlyEnd()
  const program = await createProgram(...commandsIn(asked ?? args))
  try {
    if (args.length === 0) program.outputHelp()
    else if (asked) commandAt(program, asked).outputHelp()
    else await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return EXIT.ok
    if (isJsonAsked(args)) printUsageError(error)
    return EXIT.usage
  }
  return typeof process.exitCode === 'number' ? process.exitCode : EXIT.ok
}

/** @throws CommanderError for a name that no command has. */
const commandAt = (program: Command, names: readonly string[]): Command =>
  names.reduce(
    (at, name) =>
      at.commands.find((one) => one.name() === name) ??
      at.error(`error: unknown command '${name}'`),
    program,
  )

/** The command that runs, and for a Tab the one whose words are completed. */
const commandsIn = ([first = '', ...rest]: string[]): string[] =>
  first === 'complete'
    ? [first, rest.slice(1, -1).find((word) => !word.startsWith('-')) ?? '']
    : [first]

/** @param only the commands that are needed; by default, and if one of them is unknown, all are loaded. */
export async function createProgram(...only: string[]): Promise<Command> {
  const program = new Command('mayfly')
    .description('Temporary capabilities, paid over Lightning: inboxes, whispers and monitors.')
    .version(manifest().version, '-V, --version')
    .option(
      '--url <url>',
      'the service (MAYFLY_URL, or http://127.0.0.1:8402, with MAYFLY_PORT if set)',
    )
    .option(
      '--max-sats <sats>',
      'the highest price to pay (MAYFLY_MAX_SATS, or 1000)',
      whole(0, 100_000_000),
    )
    .option('--json', 'answer in JSON; the default if stdout is not a terminal')
    .option('--quiet', 'print only answers and errors')
    .option('--debug', 'log each request and its outcome on stderr, without secrets')
    .configureHelp({ showGlobalOptions: false })
    .helpCommand('help [command]', 'show the help of a command')
    .showSuggestionAfterError()
    .showHelpAfterError('Run the command with --help to see its arguments and options.')
    .exitOverride()
    .addHelpText(
      'after',
      helpText([
        'mayfly buy catch --name hooks',
        'mayfly catch listen hooks --forward http://localhost:3000/hook',
        'mayfly whisper send secret.txt --reads 1',
        'mayfly pulse run backup -- ./backup.sh',
      ]),
    )
    .addHelpText('after', exitCodes())
  const parts = [...OF_CLIENTS, ...OF_OPERATORS]
  const needed = only.map((name) => parts.find(({ names }) => names.includes(name)))
  const add = async (group: string, some: readonly Part[]): Promise<void> => {
    program.commandsGroup(group)
    for (const part of some)
      if (needed.length === 0 || needed.includes(undefined) || needed.includes(part)) {
        for (const one of [await part.load()].flat()) one(program)
      }
  }
  await add('Commands:', OF_CLIENTS)
  await add('Commands of the operator, on the machine of the service:', OF_OPERATORS)
  for (const command of commandsOf(program)) command.copyInheritedSettings(program)
  program.addHelpText('afterAll', ({ command }) => (command === program ? '' : COMMON_OPTIONS))
  return program
}

/** The last line of each command's help. */
const COMMON_OPTIONS =
  '\nEvery command also takes --json, --url, --max-sats, --quiet and --debug: mayfly --help\n'

/** All subcommands of this one that its help shows, groups included. */
export function commandsOf(command: Command): Command[] {
  const shown = command.createHelp().visibleCommands(command)
  return shown
    .filter((child) => child.parent === command)
    .flatMap((child) => [child, ...commandsOf(child)])
}

function exitCodes(): string {
  const lines = Object.entries(EXIT_MEANINGS).map(
    ([name, meaning]) => `  ${String(EXIT[name as keyof typeof EXIT]).padEnd(3)}  ${meaning}\n`,
  )
  return `\nExit codes:\n${lines.join('')}`
}

function isJsonAsked(args: string[]): boolean {
  // Arguments after `--` belong to another program.
  const end = args.indexOf('--')
  return args.slice(0, end === -1 ? args.length : end).includes('--json')
}

function printUsageError({ code, message }: CommanderError): void {
  const error = code === 'commander.help' ? 'a command is missing' : message.replace(/^error: /, '')
  process.stdout.write(`${JSON.stringify({ error })}\n`)
}

/** Exits normally if a reader such as `head` closes the pipe. A full disk still is an error. */
function allowEarlyEnd(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.ok)
    const { sentence } = endingOf(Object.assign(error, { path: 'stdout' }), '') ?? { sentence: '' }
    process.stderr.write(`${sentence}\n`)
    process.exit(EXIT.failed)
  })
}
