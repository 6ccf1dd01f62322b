/** The command line: all commands and their common options. docs/cli.md is generated from it. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addBuy } from './buy.ts'
import { addCatalog } from './catalog.ts'
import { addCatch } from './catch.ts'
import { addCompletion } from './completion.ts'
import { examples } from './examples.ts'
import { EXIT, EXIT_MEANINGS, endingOf } from './exit.ts'
import { addGate } from './gate.ts'
import { addBackup } from './operator/backup.ts'
import { addClock } from './operator/clock.ts'
import { addDoctor } from './operator/doctor.ts'
import { addGateOperator } from './operator/gate.ts'
import { addModeration } from './operator/moderate.ts'
import { addOrder } from './operator/order.ts'
import { addServe } from './operator/serve.ts'
import { addPay } from './pay.ts'
import { addPulse } from './pulse.ts'
import { addSavedCommands } from './saved-commands.ts'
import { addWhisper } from './whisper.ts'

/** Runs one command, and resolves to its exit code. */
export async function runProgram(given: string[]): Promise<number> {
  // Commander's own `help` supports only one level of commands.
  const args = given[0] === 'help' && given.length > 2 ? [...given.slice(1), '--help'] : given
  if (args[0] !== 'serve') allowEarlyEnd()
  const program = createProgram()
  try {
    if (args.length === 0) program.outputHelp()
    else await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return EXIT.ok
    if (isJsonAsked(args)) printUsageError(error)
    return EXIT.usage
  }
  return typeof process.exitCode === 'number' ? process.exitCode : EXIT.ok
}

/** Creates all commands, to run or to describe them. */
export function createProgram(): Command {
  const program = new Command('mayfly')
    .description('Temporary capabilities, paid over Lightning: inboxes, whispers and monitors.')
    .version(version(), '-V, --version')
    .option('--url <url>', 'the service (MAYFLY_URL, or http://127.0.0.1:8402)')
    .option('--max-sats <sats>', 'the highest price to pay (MAYFLY_MAX_SATS, or 1000)')
    .option('--json', 'answer in JSON; the default if stdout is not a terminal')
    .option('--no-color', 'print without colours, as with NO_COLOR')
    .configureHelp({ showGlobalOptions: false })
    .helpCommand('help [command]', 'show the help of a command')
    .showSuggestionAfterError()
    .showHelpAfterError('Run the command with --help to see its arguments and options.')
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
    .addHelpText('after', exitCodes())
  program.commandsGroup('Commands:')
  addBuy(program)
  addSavedCommands(program)
  addCatalog(program)
  addCatch(program)
  addWhisper(program)
  addPulse(program)
  const gate = addGate(program)
  addPay(program)
  addCompletion(program)
  program.commandsGroup('Commands of the operator, on the machine of the service:')
  addServe(program)
  addDoctor(program)
  addOrder(program)
  addModeration(program)
  addClock(program)
  addBackup(program)
  addGateOperator(gate)
  for (const command of commandsOf(program)) command.copyInheritedSettings(program)
  program.addHelpText('afterAll', ({ command }) => (command === program ? '' : COMMON_OPTIONS))
  return program
}

/** The last line of each command's help. */
export const COMMON_OPTIONS =
  '\nEvery command also takes --json, --url, --max-sats and --no-color: mayfly --help\n'

/** All subcommands of this one, groups included. */
export function commandsOf(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...commandsOf(child)])
}

function exitCodes(): string {
  const lines = Object.entries(EXIT_MEANINGS).map(
    ([name, meaning]) => `  ${String(EXIT[name as keyof typeof EXIT]).padEnd(3)}  ${meaning}\n`,
  )
  return `Exit codes:\n${lines.join('')}`
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

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
