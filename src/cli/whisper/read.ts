/** `mayfly whisper …`, and of it `read`: spends a read, keeps what it brought, and opens it here. */
import { rmSync } from 'node:fs'
import { MAX_ANSWER_BYTES } from '../../client/http.ts'
import {
  MayflyError,
  type OpenedWhisper,
  openWhisper,
  parseWhisperCode,
  UnreadableWhisper,
} from '../../client/index.ts'
import { base64, utf8Text } from '../../lib/bytes.ts'
import { codeOf } from '../../lib/errors.ts'
import { askHidden, askLine, firstLine, readSecret } from '../ask.ts'
import { type Cli, client } from '../cli.ts'
import { writeFlushed } from '../data-folder.ts'
import { group } from '../declare.ts'
import { anyEnding, CliError } from '../exit.ts'
import { harmless, size } from '../text.ts'
import { findSaved, isName } from '../vault/saved.ts'
import {
  dropUnopened,
  findUnopened,
  keepUnopened,
  makeRoom,
  type Unopened,
} from '../vault/unopened.ts'
import { whisperSend } from './send.ts'

/** A password may be mistyped this often before the command has to be run again. */
const PASSWORD_TRIES = 5

const addRead = client({
  command: 'read',
  says: 'spend one read of a whisper, and open it on this machine',
  takes: {
    '<code>': 'the share code, - to paste it or for stdin, or the name of a saved whisper',
    '--out <file>': 'write it to this new file',
    '--password-file <file>': 'take the password from the first line of a file',
    '--yes': 'do not ask before spending the read',
  },
  examples: [
    'mayfly whisper read mayfly-whisper:1:… --out contract.pdf',
    'pbpaste | mayfly whisper read - > contract.pdf',
  ],
  notes: `
On a pipe it writes the exact bytes, or JSON with --json. Other users of this machine can see a code on the
command line: with - it is pasted, or read from stdin.

The content stays in the data folder, encrypted, until it is opened and written. After a wrong password or a
full disk, run the same command again: it spends no other read.
`,
  async run(cli, { code: given, ...options }) {
    const { code, baseUrl } = await shareCode(cli, given)
    const parsed = parseWhisperCode(code)
    if (parsed === null) throw new MayflyError('invalid share code', 0)
    const { publicId, hasPassword, key } = parsed
    const { out, passwordFile } = options
    // Asked for before the read is spent.
    const isTyped = hasPassword && passwordFile === undefined
    const inFile = passwordFile === undefined ? undefined : firstLine(passwordFile)
    const first = isTyped ? await askHidden('Password: ', cli.signal) : inFile
    if (out !== undefined) reserve(out)
    let kept: Unopened | null = null
    try {
      const brought = await fetchKept(cli, { code, baseUrl, publicId }, async () => {
        if (!options.yes) await warn(cli)
      })
      kept = brought.kept
      const opened = await open(cli, brought.envelope, { key, first, isTyped })
      // Where nobody takes what is written, the process ends without coming back here.
      const where = kept ? isKept(publicId) : null
      if (where) process.stdout.prependOnceListener('error', () => cli.warn(where))
      await show(cli, opened, out)
    } catch (error) {
      if (out !== undefined) rmSync(out, { force: true })
      if (kept === null) throw error
      const { code, sentence } = anyEnding(error, baseUrl)
      throw new CliError(`${sentence} ${isKept(publicId)}`, code)
    }
    if (kept) dropUnopened(cli, kept)
  },
})

export const addWhisper = group(
  { command: 'whisper', says: 'send and read content that only its readers can open' },
  [whisperSend('whisper send'), addRead],
)

/** What an earlier read brought and nobody has opened. Else it spends one, once there is room for what that brings. */
export async function fetchKept(
  cli: Cli,
  { code, baseUrl, publicId }: { code: string; baseUrl: string; publicId: string },
  beforeSpending = async (): Promise<void> => undefined,
): Promise<{ envelope: Uint8Array<ArrayBuffer>; kept: Unopened | null }> {
  const before = orUnspent(() => findUnopened(cli, publicId))
  if (before !== null) {
    cli.note('Opening the content of an earlier read. No read is spent.')
    return { envelope: before.envelope, kept: before }
  }
  await beforeSpending()
  const mayfly = cli.mayfly(baseUrl)
  const { products } = await mayfly.catalog()
  const most = Math.max(...products.whisper.plans.map((plan) => plan.maxCiphertextBytes))
  // The service may say anything, and no longer answer is taken.
  orUnspent(() => makeRoom(cli, Math.min(most, MAX_ANSWER_BYTES)))
  const envelope = await mayfly.fetchWhisper(code)
  try {
    return { envelope, kept: keepUnopened(cli, publicId, envelope) }
  } catch (error) {
    // It is here, so it is opened all the same.
    cli.warn(`The content could not be kept. ${anyEnding(error, baseUrl).sentence}`)
    return { envelope, kept: null }
  }
}

/** @throws CliError where the vault does not keep what a read would bring. */
function orUnspent<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    const { code, sentence } = anyEnding(error, '')
    throw new CliError(`The content could not be kept. ${sentence} Nothing was spent.`, code)
  }
}

const isKept = (publicId: string): string =>
  `The read is spent, and its content is kept. Run the same command to try again. To give it up: mayfly forget ${publicId}`

async function shareCode(cli: Cli, given: string): Promise<{ code: string; baseUrl: string }> {
  const { url: baseUrl } = cli
  if (given === '-') {
    return { code: (await readSecret(cli, 'Paste the code and press Enter: ')).trim(), baseUrl }
  }
  const saved = isName(given) ? findSaved(cli, given) : null
  if (saved?.capability.product !== 'whisper') return { code: given.trim(), baseUrl }
  return { code: saved.capability.code ?? '', baseUrl: saved.baseUrl }
}

/** Says on a terminal what it costs, while it costs nothing yet. */
async function warn(cli: Cli): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return
  await askLine('This spends one read. Press Enter to read, or Ctrl-C to cancel: ', cli.signal)
}

async function open(
  cli: Cli,
  envelope: Uint8Array<ArrayBuffer>,
  { key, first, isTyped }: { key: Uint8Array; first: string | undefined; isTyped: boolean },
): Promise<OpenedWhisper> {
  let password = first
  for (let tries = 1; ; tries++) {
    try {
      return await openWhisper(envelope, key, password)
    } catch (error) {
      const mayTry = isTyped && tries < PASSWORD_TRIES
      if (!mayTry || !(error instanceof UnreadableWhisper)) throw error
      password = await askHidden('The password is wrong. Password: ', cli.signal)
    }
  }
}

/** Makes the file before the read is spent: what cannot be written must cost nothing. */
function reserve(file: string): void {
  try {
    writeFlushed(file, 'wx', '')
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    throw new CliError(`${file} already exists and is never overwritten. Nothing was spent.`)
  }
}

async function show(
  cli: Cli,
  { data, name, mediaType }: OpenedWhisper,
  out: string | undefined,
): Promise<void> {
  const about = { name, mediaType, bytes: data.length }
  if (out !== undefined) {
    writeFlushed(out, 'w', data)
    return cli.answer({ ...about, out }, `${size(data.length)} written to ${out}${called(name)}\n`)
  }
  const text = utf8Text(data)
  if (cli.isJsonAsked) {
    const body =
      text === null ? { data: base64(data), encoding: 'base64' } : { data: text, encoding: 'utf8' }
    cli.answer({ ...about, ...body }, '')
    return written('')
  }
  if (!process.stdout.isTTY) return written(data)
  if (text !== null) return written(`${harmless(text, { lines: true })}\n`)
  // Under a name that nobody else chose.
  const file = `whisper-${crypto.randomUUID().slice(0, 8)}.bin`
  writeFlushed(file, 'wx', data)
  cli.warn(`The content is binary. ${size(data.length)} written to ${file}${called(name)}`)
}

/** Resolves when stdout has taken it, and all that was written before. */
function written(data: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(data, (error) => (error ? reject(error) : resolve()))
  })
}

const called = (name: string | null): string =>
  name === null ? '.' : `; its sender calls it ${harmless(name)}.`
