/** Asks on the terminal, even if stdin is a pipe, and reads stdin. */
import { openSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { addAbortSignal, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { ReadStream } from 'node:tty'
import { withFile } from './data-folder.ts'
import { CliError, misuse } from './exit.ts'

/** Reads a line without showing it. @throws CliError without a terminal. */
export async function askHidden(question: string, signal: AbortSignal): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const input = terminal()
  process.stderr.write(question)
  try {
    return await prompt('', { input, output: nowhere, signal })
  } finally {
    process.stderr.write('\n')
  }
}

/** Reads a line. @throws CliError without a terminal. */
export async function askLine(question: string, signal: AbortSignal): Promise<string> {
  try {
    return await prompt(question, { input: terminal(), output: process.stderr, signal })
  } catch (error) {
    process.stderr.write('\n')
    throw error
  }
}

/**
 * All of a file, or with - of stdin. On a terminal it says first what to do there. The first Ctrl-C ends it.
 */
export async function readInput(
  { signal }: { signal: AbortSignal },
  file: string,
  what: string,
): Promise<Buffer> {
  if (file !== '-') return withFile(file, () => readFileSync(file))
  if (process.stdin.isTTY) {
    process.stderr.write(`${what}. End with Ctrl-D on an empty line, or cancel with Ctrl-C:\n`)
  }
  return buffer(addAbortSignal(signal, process.stdin))
}

/** The first line of stdin with something on it. On a terminal it is asked for, and not shown. */
export async function readSecret(
  { signal }: { signal: AbortSignal },
  question: string,
): Promise<string> {
  if (process.stdin.isTTY) return askHidden(question, signal)
  const text = (await buffer(addAbortSignal(signal, process.stdin))).toString('utf8')
  return text.split(/\r?\n/).find((line) => line.trim() !== '') ?? ''
}

/** Makes the user type this word before what cannot be undone. @throws CliError for any other text. */
export async function confirm(
  { signal }: { signal: AbortSignal },
  word: string,
  warning: string,
): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw misuse(`${warning} Add --yes to confirm.`)
  }
  if ((await askLine(`${warning} Type ${word} to confirm: `, signal)) === word) return
  throw new CliError('That is another word, so nothing was changed.')
}

/** The first line of a file, without its line break. */
export function firstLine(file: string): string {
  const [line = ''] = withFile(file, () => readFileSync(file, 'utf8')).split(/\r?\n/)
  return line
}

type Asking = { input: ReadStream; output: Writable; signal: AbortSignal }

async function prompt(question: string, { input, output, signal }: Asking): Promise<string> {
  const lines = createInterface({ input, output, terminal: true })
  // The terminal is in raw mode, where Ctrl-C sends no signal. Here it still does.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const closed = new Promise<never>((_, reject) => {
    lines.once('close', () => reject(misuse('Nothing was typed.')))
  })
  try {
    return await Promise.race([lines.question(question, { signal }), closed])
  } finally {
    lines.close()
    input.destroy()
  }
}

function terminal(): ReadStream {
  try {
    return new ReadStream(openSync('/dev/tty', 'r+'))
  } catch {
    throw misuse('There is no terminal to type a password on. Use --password-file instead.')
  }
}
