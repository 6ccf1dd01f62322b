/** SIGHUP: the operator asks for a reload, or the terminal of a service in the foreground was closed. */
import { isatty } from 'node:tty'

export type HangUp = 'reload' | 'stop'

/** The standard streams. */
const STREAMS = [0, 1, 2] as const

/**
 * Listens from now on, so that no such signal ends the process. Windows has the signal only for a console that is
 * being closed, which ends the process ten seconds later: there it keeps its meaning.
 * @param isTerminal whether a stream is one, which it is not any more after its terminal was closed.
 */
export function onHangUp(
  listener: (what: HangUp) => void,
  { platform = process.platform, isTerminal = isatty } = {},
): void {
  if (platform === 'win32') return
  const terminals = STREAMS.filter((stream) => isTerminal(stream))
  process.on('SIGHUP', () => {
    listener(terminals.every((stream) => isTerminal(stream)) ? 'reload' : 'stop')
  })
}
