/** The names of the commands for those who buy and use, a line for each group. Those of operators stand on their own pages. */
import { commandsOf, createProgram } from '../src/cli/program.ts'

const OF_OPERATORS = ['gate', 'serve', 'doctor', 'order', 'sales', 'takedown', 'backup', 'restore']

export async function commandsList(): Promise<string> {
  const program = await createProgram()
  const shown = commandsOf(program).filter(
    ({ commands, parent }) => commands.length === 0 && parent !== null,
  )
  const groups = Map.groupBy(shown, ({ parent }) => (parent === program ? '' : parent?.name()))
  return [...groups]
    .map(([group = '', commands]): [string, string[]] => [
      group,
      commands.map((command) => command.name()).filter((name) => !OF_OPERATORS.includes(name)),
    ])
    .filter(([group]) => !OF_OPERATORS.includes(group))
    .map(
      ([group, names]) =>
        `- ${group && `**${group}** `}${names.map((name) => `\`${name}\``).join(', ')}`,
    )
    .join('\n')
}
