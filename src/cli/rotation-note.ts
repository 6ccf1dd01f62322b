/**
 * The note of a rotation of a ping token that has begun here. It is on disk before the service is asked, and is removed
 * once the new token is saved. If the process dies in between, the saved token may be the one that pings no more: the
 * note says so, and the owner's token makes another one.
 */
import { join } from 'node:path'
import { readIfThere } from './data-folder.ts'
import { CliError, EXIT, endingOf } from './exit.ts'

export const noteOf = ({ folder }: { folder: string }, name: string): string =>
  join(folder, 'rotations', `${name}.note`)

/** The error of a ping that was refused: if a rotation was interrupted here, it says what to do. */
export function refusedPing(
  error: unknown,
  { folder, name }: { folder: string; name: string },
): unknown {
  const isGone = endingOf(error, '')?.code === EXIT.gone
  if (!isGone || readIfThere(noteOf({ folder }, name)) === null) return error
  return new CliError(
    `The service refused the ping, and a rotation of the ping token of ${name} was interrupted here. Run it again: mayfly pulse rotate ${name}`,
    EXIT.gone,
  )
}
