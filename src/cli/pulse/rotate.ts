/** `mayfly pulse rotate`: another ping token for a monitor, if the one before was seen by others. */
import type { Command } from 'commander'
import { type Cli, client } from '../cli.ts'
import { CliError, EXIT, endingOf } from '../exit.ts'
import { loadPulse, saveAgain } from '../vault/saved.ts'

export function addPulseRotate(parent: Command): void {
  client(
    parent
      .command('rotate')
      .description('replace the ping token of a monitor; the one before stops at once')
      .argument('<name>', 'the monitor'),
    {
      examples: [
        'mayfly pulse rotate backup',
        'mayfly export backup --ping-only --as curl --out backup.curl',
      ],
    },
    async (cli, _options, [name]) => {
      await rotate(cli, name)
      cli.answer(
        { name, rotated: true },
        `${name} has a new ping token, which is saved here. The one before pings no more.\nIts jobs elsewhere need the new one: mayfly export ${name} --ping-only\n`,
      )
    },
  )
}

/** Makes a new ping token and saves it in place of the one before. */
async function rotate(cli: Cli, name: string): Promise<void> {
  const { monitor, capability } = loadPulse(cli, name)
  const { publicId } = capability
  const keep = (pingToken?: string): unknown =>
    saveAgain<Saved>(cli, name, (saved) =>
      pingToken === undefined || saved.capability.publicId !== publicId
        ? saved
        : { ...saved, capability: { ...saved.capability, pingToken } },
    )
  // The one before stops at once, so nothing is asked for where the new one could not be saved.
  keep()
  const { token } = await monitor.rotateToken('ping')
  keep(token)
}

type Saved = Pick<ReturnType<typeof loadPulse>, 'capability' | 'baseUrl'>

/** The error of a ping that was refused, with what may have happened and what to do. */
export function refusedPing(error: unknown, name: string): unknown {
  if (endingOf(error, '')?.code !== EXIT.gone || error instanceof CliError) return error
  return new CliError(
    `The service refused the ping: ${name} has ended, has used up its pings, or its owner has replaced the ping token. The owner sees which: mayfly status ${name}. If a rotation was interrupted, run it again: mayfly pulse rotate ${name}`,
    EXIT.gone,
  )
}
