/** `mayfly export NAME`: the file of a capability for another machine, whole or for pings only. */
import type { Command } from 'commander'
import type { SavedPing } from '../client/capability-file.ts'
import { client } from './cli.ts'
import { isCode, writeFlushed } from './data-folder.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { openPurchase } from './vault/purchases.ts'
import { findKept, isPingOnly, load, loadPing, textOf } from './vault/saved.ts'

type Options = { pingOnly?: true; as: string; out?: string }

export function addExport(program: Command): void {
  program
    .command('export')
    .description('write the file of a capability for another machine: whoever has it can use it')
    .argument('<name>')
    .option('--ping-only', 'of a monitor, only what its jobs need: no owner token')
    .option(
      '--as <format>',
      'json for `mayfly import`, or with --ping-only curl for `curl -K`',
      'json',
    )
    .option('--out <file>', 'write it to this new file, which only this user can read')
    .addHelpText(
      'after',
      examples(
        'mayfly export backup --ping-only | ssh server mayfly import - --name backup',
        'mayfly export backup --ping-only --as curl --out backup.curl',
      ),
    )
    .action(
      client<Options>(async (cli, { pingOnly, as, out }, [name]) => {
        if (as !== 'json' && !(as === 'curl' && pingOnly)) throw wrongFormat()
        const record = pingOnly || findKept(cli, name) !== null ? null : openPurchase(cli, name)
        const kept =
          record !== null ? null : pingOnly ? withoutOwner(loadPing(cli, name)) : load(cli, name)
        const text =
          kept === null
            ? `${JSON.stringify({ mayfly: 1, purchase: record })}\n`
            : as === 'curl' && isPingOnly(kept)
              ? curlConfig(kept)
              : textOf(kept)
        if (out === undefined) {
          process.stdout.write(text)
          return EXIT.ok
        }
        writeNew(out, text)
        cli.answer({ name, file: out, pingOnly: pingOnly ?? false }, `Written to ${out}\n`)
        return EXIT.ok
      }),
    )
}

function writeNew(file: string, text: string): void {
  try {
    writeFlushed(file, 'wx', text)
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
    throw new CliError(`${file} already exists, and is never overwritten.`)
  }
}

function withoutOwner({ capability, ...rest }: SavedPing): SavedPing {
  const { product, publicId, pingToken, expiresAt } = capability
  return { ...rest, capability: { product, publicId, pingToken, expiresAt } }
}

/** In a file, because every user of the machine can read the arguments of `curl`. */
function curlConfig({ capability, baseUrl }: SavedPing): string {
  const { publicId, pingToken } = capability
  return [
    `url = "${baseUrl}/p/${publicId}"`,
    'request = "POST"',
    `header = "Authorization: Bearer ${pingToken}"`,
    ...['fail', 'silent', 'show-error', 'max-time = 10', 'retry = 3'],
    '',
  ].join('\n')
}

const wrongFormat = (): CliError =>
  new CliError('--as must be json, or curl together with --ping-only.', EXIT.usage)
