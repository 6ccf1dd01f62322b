/** The command line: every command and what is common to all of them. docs/cli.md is made of it. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addBuy } from './buy.ts'
import { addCatalog } from './catalog.ts'
import { addCatch } from './catch.ts'
import type { GlobalOptions } from './cli.ts'
import { examples } from './examples.ts'
import { EXIT, endingOf } from './exit.ts'
import { addGate, isOperatorsGate } from './gate-commands.ts'
import { addPay } from './pay.ts'
import { addPulse } from './pulse.ts'
import { addSavedCommands } from './saved-commands.ts'
import { addWhisper } from './whisper.ts'

/** Runs one command, and resolves to its exit code. */
export async function runProgram(given: string[]): Promise<number> {
  // Commander's own `help` knows the first name alone.
  const args = given[0] === 'help' && given.length > 2 ? [...given.slice(1), '--help'] : given
  const [name = '', ...rest] = args
  if (isOperatorsGate(args)) return (await import('./operator/gate.ts')).gateCommand(rest)
  const operators = rest.some((argument) => argument === '--help' || argument === '-h')
    ? undefined
    : AS_THEY_ARE[name]
  if (operators) return operators.run(rest)
  if (name !== 'serve') allowEarlyEnd()
  const program = createProgram()
  try {
    if (args.length === 0) program.outputHelp()
    else await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return EXIT.ok
    if (isJsonAsked(args)) tellUsage(error)
    return EXIT.usage
  }
  return typeof process.exitCode === 'number' ? process.exitCode : EXIT.ok
}

/** All commands, for running them and for describing them. */
export function createProgram(): Command {
  const program = new Command('mayfly')
    .description('Temporary capabilities, paid over Lightning: inboxes, whispers and monitors.')
    .version(version(), '-V, --version')
    .option('--url <url>', 'the service (MAYFLY_URL, or http://127.0.0.1:8402)')
    .option('--max-sats <sats>', 'the most that a payment may cost (MAYFLY_MAX_SATS, or 1000)')
    .option('--json', 'answer in JSON, as it does where stdout is no terminal')
    .option('--no-color', 'no colours, like NO_COLOR')
    .configureHelp({ showGlobalOptions: false })
    .helpCommand('help [command]', 'show the help of a command')
    .showSuggestionAfterError()
    .showHelpAfterError('Run it with --help for what it takes.')
    .exitOverride()
    .addHelpText(
      'after',
      examples(
        'mayfly buy catch --name hooks',
        'mayfly catch listen hooks --forward http://localhost:3000/hook',
        'mayfly whisper send secret.txt --reads 1',
        'mayfly pulse run backup -- ./backup.sh',
      ),
    )
  addBuy(program)
  addSavedCommands(program)
  addCatalog(program)
  addCatch(program)
  addWhisper(program)
  addPulse(program)
  addGate(program)
  addPay(program)
  addOperators(program)
  for (const command of commandsOf(program)) command.copyInheritedSettings(program)
  program.addHelpText('afterAll', ({ command }) => (command === program ? '' : COMMON_OPTIONS))
  return program
}

/** At the end of each command's help. */
export const COMMON_OPTIONS =
  '\n--json, --url, --max-sats and --no-color go with every command: mayfly --help\n'

/** Every command below this one, groups included. */
export function commandsOf(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...commandsOf(child)])
}

type Operators = {
  takes: string
  /** What its argument is. */
  such: string
  what: string
  examples: string[]
  run(args: string[]): Promise<number>
}

/** Operator's commands that read their arguments themselves, as GATE's do. */
const AS_THEY_ARE: Record<string, Operators> = {
  suspend: {
    takes: '<publicId>',
    such: 'the inbox, catch_…',
    what: 'stop an inbox from taking requests (abuse); its owner still reads it',
    examples: ['mayfly suspend catch_…'],
    run: async (args) => (await import('./operator/moderate.ts')).moderateCommand('suspend', args),
  },
  resume: {
    takes: '<publicId>',
    such: 'the inbox, catch_…',
    what: 'let a suspended inbox take requests again',
    examples: ['mayfly resume catch_…'],
    run: async (args) => (await import('./operator/moderate.ts')).moderateCommand('resume', args),
  },
  order: {
    takes: '[command...]',
    such: 'show, close, repair, refunded or restore, and a payment hash or order_…',
    what: 'look at, close or repair one order, or note its refund; alone it says how',
    examples: [
      'mayfly order show <paymentHash>',
      'mayfly order show order_…',
      'mayfly order close <paymentHash>',
      'mayfly order repair <paymentHash>',
      'mayfly order repair <paymentHash> --deliver',
      'mayfly order refunded <paymentHash>',
      'mayfly order restore <paymentHash> --product catch --plan spark',
    ],
    run: async (args) => (await import('./operator/order.ts')).orderCommand(args),
  },
  clock: {
    takes: '<command>',
    such: 'show, or accept',
    what: 'say that the clock is right after a jump, so that the service deletes what is over again',
    examples: ['mayfly clock show', 'mayfly clock accept'],
    run: async (args) => (await import('./operator/clock.ts')).clockCommand(args),
  },
  backup: {
    takes: '<file>',
    such: 'where the copy goes; nothing is written over',
    what: 'copy the embedded store, also while the service runs',
    examples: ['mayfly backup /backups/mayfly-2026-01-02.db'],
    run: async (args) => (await import('./operator/backup.ts')).backupCommand(args),
  },
  restore: {
    takes: '<file>',
    such: 'the copy; the service is stopped',
    what: 'put a copy where the store belongs',
    examples: ['mayfly restore /backups/mayfly-2026-01-02.db'],
    run: async (args) => (await import('./operator/backup.ts')).restoreCommand(args),
  },
}

/** What runs the service. These load the server, so each is imported only when it runs. */
function addOperators(program: Command): void {
  program
    .command('serve')
    .description('start the service (docs/operate.md)')
    .addHelpText('after', examples('mayfly serve', 'MAYFLY_PORT=9000 mayfly serve'))
    .action(async () => {
      process.exitCode = await (await import('./operator/serve.ts')).serveCommand()
    })
  program
    .command('doctor')
    .description('check the configuration, the store, the node, the clock and the wallet')
    .addHelpText('after', examples('mayfly doctor'))
    .action(async function action(this: Command) {
      const isJson = this.optsWithGlobals<GlobalOptions>().json ?? !process.stdout.isTTY
      process.exitCode = await (await import('./operator/doctor.ts')).doctorCommand({ isJson })
    })
  for (const [name, operators] of Object.entries(AS_THEY_ARE)) {
    const { takes, such, what, run } = operators
    program
      .command(name)
      .description(what)
      .argument(takes, such)
      .addHelpText('after', examples(...operators.examples))
      .action(async function action(this: Command) {
        process.exitCode = await run(this.args)
      })
  }
}

function isJsonAsked(args: string[]): boolean {
  // What follows is another command's.
  const end = args.indexOf('--')
  return args.slice(0, end === -1 ? args.length : end).includes('--json')
}

function tellUsage({ code, message }: CommanderError): void {
  const error = code === 'commander.help' ? 'no command is named' : message.replace(/^error: /, '')
  process.stdout.write(`${JSON.stringify({ error })}\n`)
}

/** A reader that has seen enough, such as `head`, is no failure; a disk that is full is one. */
function allowEarlyEnd(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.ok)
    const { sentence } = endingOf(Object.assign(error, { path: 'stdout' }), '') ?? { sentence: '' }
    process.stderr.write(`${sentence}\n`)
    process.exit(EXIT.failed)
  })
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
