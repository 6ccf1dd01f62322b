/** `mayfly pulse rotate`: another ping token for a monitor, if the one before was seen by others. */
import type { Command } from 'commander'
import { MayflyError } from '../../client/index.ts'
import { type Cli, client } from '../cli.ts'
import { CliError, EXIT, endingOf } from '../exit.ts'
import { examples } from '../text.ts'
import { beginRotation, endRotation, isRotating } from '../vault/rotation.ts'
import { loadPing, loadPulse, saveAgain } from '../vault/saved.ts'
import { inVault, type Place } from '../vault/vault.ts'

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
      }),
    )
}

/** Makes a new ping token and saves it in place of the one before. One at a time for each monitor. */
async function rotate(cli: Cli, name: string): Promise<void> {
  const { capability, baseUrl } = loadPulse(cli, name)
  const { publicId } = capability
  beginRotation(cli, publicId)
  const { token: pingToken } = await cli
    .mayfly(baseUrl)
    .pulse(capability)
    .rotateToken('ping')
    .catch((error: unknown) => {
      // An answer that refuses it has changed nothing. Without one, nobody knows.
      const isRefused = error instanceof MayflyError && error.status >= 400 && error.status < 500
      if (isRefused) endRotation(cli, publicId)
      throw error
    })
  inVault(cli, (db) => {
    const place = { ...cli, db }
    saveAgain<Saved>(place, name, (saved) =>
      saved.capability.publicId === publicId
        ? { ...saved, capability: { ...saved.capability, pingToken } }
        : saved,
    )
    endRotation(place, publicId)
  })
}

type Saved = ReturnType<typeof loadPulse>

/** The error of a ping that was refused, with what may have happened and what to do. */
export function refusedPing(error: unknown, place: Place & { name: string }): unknown {
  if (endingOf(error, '')?.code !== EXIT.gone || error instanceof CliError) return error
  const { name } = place
  return new CliError(
    isRotating(place, loadPing(place, name).capability.publicId)
      ? `The service refused the ping, and a rotation of the ping token of ${name} was interrupted here. Run it again: mayfly pulse rotate ${name}`
      : `The service refused the ping: ${name} has ended, has used up its pings, or its owner has replaced the ping token. The owner sees which: mayfly status ${name}`,
    EXIT.gone,
  )
}
