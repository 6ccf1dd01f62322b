/** `mayfly pulse switch`: the id that binds a whisper to the silence of a monitor. */
import type { Command } from 'commander'
import { client } from './cli.ts'
import { examples } from './examples.ts'
import { EXIT } from './exit.ts'
import { loadPulse } from './saved.ts'

export function addPulseSwitch(parent: Command): void {
  parent
    .command('switch')
    .description('show the switch of a monitor, which opens whispers when the monitor falls silent')
    .argument('<name>', 'the monitor')
    .option('--retire', 'let nothing more be bound to it; what is bound stays bound')
    .addHelpText(
      'after',
      examples('mayfly pulse switch alive', 'mayfly whisper send will.txt --when-late alive'),
    )
    .action(
      client<{ retire?: true }>(async (cli, { retire }, [name]) => {
        const { capability, baseUrl } = loadPulse(cli, name)
        const monitor = cli.mayfly(baseUrl).pulse(capability)
        if (retire) {
          await monitor.retireSwitch()
          cli.answer({ name, retired: true }, `The switch of ${name} is retired.\n`)
          return EXIT.ok
        }
        const { switchId } = await monitor.makeSwitch()
        cli.answer(
          { name, switchId },
          `${switchId}\n\nWho has this id can buy a whisper that opens when ${name} falls silent. It tells nothing else of the monitor.\n`,
        )
        return EXIT.ok
      }),
    )
}
