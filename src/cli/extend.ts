/** `mayfly extend`: buys the plan of a saved inbox or monitor once more, before it ends. */
import type { Command } from 'commander'
import { client } from './cli.ts'
import { examples } from './examples.ts'
import { EXIT } from './exit.ts'
import { extendSaved } from './extension.ts'
import { savedAs } from './purchase.ts'
import { away } from './text.ts'
import { checkName } from './vault/saved.ts'

export function addExtend(program: Command): void {
  program
    .command('extend')
    .description('buy the plan of an inbox or a monitor once more, before it ends')
    .argument('<name>', 'its name')
    .addHelpText(
      'after',
      examples(
        'mayfly extend hooks                     shows an invoice and waits for the payment',
        'MAYFLY_WALLET_URL=simulator: mayfly extend hooks',
      ),
    )
    .action(
      client(async (cli, _options, [given]) => {
        const name = checkName(given)
        const done = await extendSaved(cli, name)
        if ('expiresAt' in done) {
          const { expiresAt } = done
          cli.answer(
            { name, extended: true, expiresAt },
            `${name} is extended. It expires ${away(expiresAt, cli.now())}, ${expiresAt}\n`,
          )
          return EXIT.ok
        }
        const { publicId } = done.replacement.capability
        cli.answer(
          { name: done.name, extended: false, publicId },
          `${name} had ended before it was paid, so the service sold a new one in its place.\n${savedAs(cli, done.name)}`,
        )
        return EXIT.ok
      }),
    )
}
