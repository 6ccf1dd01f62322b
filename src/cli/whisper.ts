/** `mayfly whisper …`: bytes that only their readers can open. */
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { text as readStream } from 'node:stream/consumers'
import type { Command } from 'commander'
import {
  MayflyError,
  type OpenedWhisper,
  openWhisper,
  parseWhisperCode,
  UnreadableWhisper,
} from '../client/index.ts'
import { base64, utf8Text } from '../lib/bytes.ts'
import { askHidden, askLine, firstLine } from './ask.ts'
import { type Cli, client } from './cli.ts'
import { isCode } from './data-folder.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { findSaved, isName } from './saved.ts'
import { harmless, size } from './text.ts'
import { addWhisperSend } from './whisper-send.ts'

/** A password may be mistyped this often: the read is spent, and the bytes are here. */
const PASSWORD_TRIES = 5

type Options = { out?: string; yes?: true; password?: true; passwordFile?: string }

export function addWhisper(program: Command): void {
  const parent = program
    .command('whisper')
    .description('send and read what only its readers can open')
  addWhisperSend(parent, 'send')
  parent
    .command('read')
    .description('spend one read of a whisper, and open it here')
    .argument('<code>', 'the share code, - for stdin, or the name of one that is saved here')
    .option('--out <file>', 'write it to this file, which must not be there yet')
    .option('--password-file <file>', 'take the password from the first line of a file')
    .option('--yes', 'do not ask before the read is spent')
    .addHelpText(
      'after',
      `${examples(
        'mayfly whisper read mayfly-whisper:1:… --out contract.pdf',
        'pbpaste | mayfly whisper read - > contract.pdf',
      )}
Piped, it writes the exact bytes, and JSON only with --json. A code on the command line can be seen by
other users of this machine; - takes it from stdin.
`,
    )
    .action(
      client<Options>(async (cli, options, given: string) => {
        const { code, baseUrl } = await codeOf(cli, given)
        const parsed = parseWhisperCode(code)
        if (parsed === null) throw new MayflyError('invalid share code', 0)
        const password = await passwordOf(cli, parsed.hasPassword, options)
        if (options.out !== undefined) reserve(options.out)
        let opened: OpenedWhisper
        try {
          if (!options.yes) await warn(cli)
          const envelope = await cli.mayfly(baseUrl).fetchWhisper(code)
          opened = await open(cli, envelope, parsed.key, password)
        } catch (error) {
          if (options.out !== undefined) rmSync(options.out, { force: true })
          throw error
        }
        show(cli, opened, options.out)
        return EXIT.ok
      }),
    )
}

async function codeOf(cli: Cli, given: string): Promise<{ code: string; baseUrl: string }> {
  if (given === '-') return { code: (await readStream(process.stdin)).trim(), baseUrl: cli.url }
  const saved = isName(given) ? findSaved(cli, given) : null
  if (saved?.capability.product !== 'whisper') return { code: given.trim(), baseUrl: cli.url }
  return { code: saved.capability.code ?? '', baseUrl: saved.baseUrl }
}

async function passwordOf(
  cli: Cli,
  isNeeded: boolean,
  { passwordFile }: Options,
): Promise<string | undefined> {
  if (passwordFile !== undefined) return firstLine(passwordFile)
  if (!isNeeded) return undefined
  // Asked for before the read is spent.
  return askHidden('Password: ', cli.signal)
}

/** Says on a terminal what it costs, while it costs nothing yet. */
async function warn(cli: Cli): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return
  await askLine('This spends one of its reads. Enter reads it, Ctrl-C leaves it: ', cli.signal)
}

async function open(
  cli: Cli,
  envelope: Uint8Array<ArrayBuffer>,
  key: Uint8Array,
  first: string | undefined,
): Promise<OpenedWhisper> {
  let password = first
  for (let tries = 1; ; tries++) {
    try {
      return await openWhisper(envelope, key, password)
    } catch (error) {
      const mayAsk =
        error instanceof UnreadableWhisper && first !== undefined && process.stdin.isTTY
      if (!mayAsk || tries === PASSWORD_TRIES) throw error
      password = await askHidden('It does not open. Password: ', cli.signal)
    }
  }
}

/** Makes the file before the read is spent: what cannot be written must cost nothing. */
function reserve(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
    throw new CliError(`${file} is there already, and is not overwritten. Nothing was spent.`)
  }
}

function show(cli: Cli, { data, name, mediaType }: OpenedWhisper, out: string | undefined): void {
  const about = { name, mediaType, bytes: data.length }
  if (out !== undefined) {
    writeFileSync(out, data)
    cli.answer({ ...about, out }, `${size(data.length)} written to ${out}${called(name)}\n`)
    return
  }
  const text = utf8Text(data)
  if (cli.isJsonAsked) {
    const body =
      text === null ? { data: base64(data), encoding: 'base64' } : { data: text, encoding: 'utf8' }
    cli.answer({ ...about, ...body }, '')
  } else if (!process.stdout.isTTY) process.stdout.write(data)
  else if (text !== null) process.stdout.write(`${harmless(text, { lines: true })}\n`)
  else {
    // The read is spent, so the bytes are kept, under a name that nobody else chose.
    const file = `whisper-${crypto.randomUUID().slice(0, 8)}.bin`
    writeFileSync(file, data, { flag: 'wx', mode: 0o600 })
    cli.note(`It is no text. ${size(data.length)} written to ${file}${called(name)}`)
  }
}

const called = (name: string | null): string =>
  name === null ? '.' : `; its sender calls it ${harmless(name)}.`
