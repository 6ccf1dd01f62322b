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
