/** `mayfly pulse rotate`: another ping token for a monitor, if the one before was seen by others. */
import { rmSync } from 'node:fs'
import type { Command } from 'commander'
import { MayflyError } from '../client/index.ts'
import { type Cli, client } from './cli.ts'
import { overwrite } from './data-folder.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { takeLock } from './lock.ts'
import { noteOf } from './rotation-note.ts'
import { fileOf, loadPulse, textOf } from './saved.ts'

export function addPulseRotate(parent: Command): void {
  parent
    .command('rotate')
    .description('replace the ping token of a monitor; the one before stops at once')
    .argument('<name>', 'the monitor')
    .addHelpText(
      'after',
      examples(
        'mayfly pulse rotate backup',
        'mayfly export backup --ping-only --as curl --out backup.curl',
      ),
    )
    .action(
      client(async (cli, _options, [name]) => {
        await rotate(cli, name)
        cli.answer(
          { name, rotated: true },
          `${name} has a new ping token, which is saved here. The one before pings no more.\nIts jobs elsewhere need the new one: mayfly export ${name} --ping-only\n`,
        )
        return EXIT.ok
      }),
    )
}

/** Makes a new ping token and saves it in place of the one before. One at a time for each name. */
async function rotate(cli: Cli, name: string): Promise<void> {
  loadPulse(cli, name)
  const lock = takeLock(`${noteOf(cli, name)}.lock`)
  if ('heldBy' in lock) {
    throw new CliError(`${name} gets a new ping token already, in process ${lock.heldBy}.`)
  }
  try {
    // Read under the lock: another process may have saved a newer one.
    const { capability, ...rest } = loadPulse(cli, name)
    overwrite(noteOf(cli, name), `${capability.publicId}\n`)
    const pingToken = await newToken(cli, { name, ...rest, capability })
    overwrite(fileOf(cli, name), textOf({ ...rest, capability: { ...capability, pingToken } }))
    rmSync(noteOf(cli, name), { force: true })
  } finally {
    lock.release()
  }
}

type Rotated = ReturnType<typeof loadPulse> & { name: string }

async function newToken(cli: Cli, { name, capability, baseUrl }: Rotated): Promise<string> {
  try {
    return (await cli.mayfly(baseUrl).pulse(capability).rotatePingToken()).pingToken
  } catch (error) {
    // An answer that refuses it has changed nothing. Without one, nobody knows.
    const isRefused = error instanceof MayflyError && error.status >= 400 && error.status < 500
    if (isRefused) rmSync(noteOf(cli, name), { force: true })
    throw error
  }
}
