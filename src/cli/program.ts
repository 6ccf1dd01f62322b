/** The command line: all commands and their common options. */
import { Command, CommanderError } from 'commander'
import { type Add, COMMON, take } from './declare.ts'
import { EXIT, EXIT_MEANINGS, endingOf, manifest } from './exit.ts'
import { helpText } from './text.ts'

/** The files of commands, by the names of those for which the file is enough. Loaded to run one, or to describe all. */
type Parts = Readonly<Record<string, () => Promise<Add | readonly Add[]>>>

/** In the order of the help. */
const OF_CLIENTS: Parts = {
  buy: async () => (await import('./buy.ts')).addBuy,
  extend: async () => (await import('./extension.ts')).addExtend,
  recover: async () => (await import('./recover.ts')).addRecover,
  catalog: async () => (await import('./catalog.ts')).addCatalog,
  'list show open move destroy': async () => (await import('./saved-commands.ts')).savedCommands,
  status: async () => (await import('./status.ts')).addStatus,
  alerts: async () => (await import('./alerts.ts')).addAlerts,
  forget: async () => (await import('./forget.ts')).addForget,
  'export import': async () => (await import('./export.ts')).exportAndImport,
  catch: async () => (await import('./catch/catch.ts')).addCatch,
  whisper: async () => (await import('./whisper/read.ts')).addWhisper,
  pulse: async () => (await import('./pulse/pulse.ts')).addPulse,
  ping: async () => (await import('./pulse/pulse.ts')).addPing,
  pay: async () => (await import('./pay.ts')).addPay,
  mcp: async () => (await import('./mcp.ts')).addMcp,
  budget: async () => (await import('./budget.ts')).addBudget,
  'completion complete': async () => (await import('./completion.ts')).completion,
}

const OF_OPERATORS: Parts = {
  serve: async () => (await import('./operator/serve.ts')).addServe,
  doctor: async () => (await import('./operator/doctor.ts')).addDoctor,
  order: async () => (await import('./operator/order.ts')).addOrder,
  sales: async () => (await import('./operator/sales.ts')).addSales,
  takedown: async () => (await import('./operator/takedown.ts')).addTakedown,
  gate: async () => (await import('./operator/gate.ts')).addGate,
  'backup restore': async () => (await import('./operator/backup.ts')).backupAndRestore,
}

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
    if (error.code === VERSION_ASKED) printVersion(error.message, isJsonAsked(args))
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
    .option('-V, --version', 'output the version number')
    .on('option:version', () => {
      throw new CommanderError(EXIT.ok, VERSION_ASKED, manifest().version)
    })
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
  take(program, COMMON)
  const all = Object.keys({ ...OF_CLIENTS, ...OF_OPERATORS })
  const needed = only.map((name) => all.find((names) => names.split(' ').includes(name)))
  const isAll = needed.length === 0 || needed.includes(undefined)
  const add = async (title: string, parts: Parts): Promise<void> => {
    program.commandsGroup(title)
    for (const [names, load] of Object.entries(parts)) {
      if (!isAll && !needed.includes(names)) continue
      for (const one of [await load()].flat()) one(program)
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

const VERSION_ASKED = 'mayfly.version'

function printVersion(version: string, isJson: boolean): void {
  process.stdout.write(`${isJson ? JSON.stringify({ version }) : version}\n`)
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
