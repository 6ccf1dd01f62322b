/** `mayfly pulse rotate`: another ping token for a monitor, if the one before was seen by others. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { MayflyError } from '../../client/index.ts'
import { type Cli, client } from '../cli.ts'
import { overwrite, readIfThere } from '../data-folder.ts'
import { examples } from '../examples.ts'
import { CliError, EXIT, endingOf } from '../exit.ts'
import { takeLock } from '../lock.ts'
import { loadPulse, saveAgain } from '../vault/saved.ts'

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
    saveAgain<Saved>(cli, name, (saved) =>
      saved.capability.publicId === capability.publicId
        ? { ...saved, capability: { ...saved.capability, pingToken } }
        : saved,
    )
    rmSync(noteOf(cli, name), { force: true })
  } finally {
    lock.release()
  }
}

type Saved = ReturnType<typeof loadPulse>
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

export const noteOf = ({ folder }: { folder: string }, name: string): string =>
  join(folder, 'rotations', `${name}.note`)

/** The error of a ping that was refused, with what may have happened and what to do. */
export function refusedPing(
  error: unknown,
  { folder, name }: { folder: string; name: string },
): unknown {
  if (endingOf(error, '')?.code !== EXIT.gone || error instanceof CliError) return error
  const isInterrupted = readIfThere(noteOf({ folder }, name)) !== null
  return new CliError(
    isInterrupted
      ? `The service refused the ping, and a rotation of the ping token of ${name} was interrupted here. Run it again: mayfly pulse rotate ${name}`
      : `The service refused the ping: ${name} has ended, has used up its pings, or its owner has replaced the ping token. The owner sees which: mayfly pulse status ${name}`,
    EXIT.gone,
  )
}
