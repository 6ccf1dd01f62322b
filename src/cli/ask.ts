/** Asking the person at the terminal, whatever stdin is. */
import { openSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { ReadStream } from 'node:tty'
import { CliError, EXIT } from './exit.ts'

/** A line that is typed without being shown. @throws CliError where there is no terminal. */
export function askHidden(prompt: string, signal: AbortSignal): Promise<string> {
  return ask(prompt, signal, new Writable({ write: (_chunk, _encoding, done) => done() }))
}

/** A line that is typed. @throws CliError where there is no terminal. */
export function askLine(prompt: string, signal: AbortSignal): Promise<string> {
  return ask(prompt, signal, process.stderr)
}

/** The first line of a file, without its end. */
export function firstLine(file: string): string {
  const [line = ''] = readFileSync(file, 'utf8').split(/\r?\n/)
  return line
}

async function ask(prompt: string, signal: AbortSignal, output: Writable): Promise<string> {
  const input = terminal()
  process.stderr.write(prompt)
  const lines = createInterface({ input, output, terminal: true })
  try {
    return await lines.question('', { signal })
  } finally {
    lines.close()
    input.destroy()
    process.stderr.write('\n')
  }
}

function terminal(): ReadStream {
  try {
    return new ReadStream(openSync(process.platform === 'win32' ? '\\\\.\\CON' : '/dev/tty', 'r+'))
  } catch {
    throw new CliError(
      'There is no terminal to ask on. --password-file names a file with the password.',
      EXIT.usage,
    )
  }
}
