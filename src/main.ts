/** The entry: one command, by its name. */

import { gateCommand } from './cli/gate.ts'
import { moderateCommand } from './cli/moderate.ts'
import { serveCommand } from './cli/serve.ts'

type Command = (args: string[]) => Promise<number>

const COMMANDS: Record<string, Command> = {
  serve: serveCommand,
  gate: gateCommand,
  suspend: (args) => moderateCommand('suspend', args),
  resume: (args) => moderateCommand('resume', args),
}

const USAGE = `Usage: mayfly <command>

  serve                start the service
  suspend <publicId>   stop an inbox from taking requests (abuse); its owner still reads it
  resume <publicId>    let it take requests again
  gate …               projects, routes and credits of GATE (private beta); alone it lists them
`

const [name = '', ...args] = process.argv.slice(2)
const command = COMMANDS[name]
if (command) {
  process.exitCode = await command(args)
} else {
  process.stderr.write(USAGE)
  process.exitCode = name === '' || name === 'help' || name === '--help' ? 0 : 2
}
