/** The commands of docs/cli.md for those who buy and use, a line each. Those of operators stand on their own pages. */
import type { Command } from 'commander'
import { commandsOf, createProgram } from '../src/cli/program.ts'

const OF_OPERATORS = ['gate', 'serve', 'doctor', 'order', 'sales', 'takedown', 'backup', 'restore']

export async function commandsList(): Promise<string> {
  const program = await createProgram()
  return commandsOf(program)
    .filter(({ commands }) => commands.length === 0)
    .map((command) => ({ command, path: pathOf(command) }))
    .filter(({ path: [first = ''] }) => !OF_OPERATORS.includes(first))
    .map(({ command, path }) => {
      const usage = command.usage().replace('[options]', '').trim()
      return `- \`${[...path, usage].join(' ').trim()}\`: ${command.description()}`
    })
    .join('\n')
}

/** The words after `mayfly`. */
const pathOf = (command: Command): string[] =>
  command.parent ? [...pathOf(command.parent), command.name()] : []
