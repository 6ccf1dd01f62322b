/** `mayfly whisper send`, and `mayfly buy whisper`: encrypts here, pays, and shows the share code. */
import { basename } from 'node:path'
import { sealWhisper } from '../../client/index.ts'
import { isId } from '../../lib/ids.ts'
import { MAX_READS } from '../../protocol/whisper-code.ts'
import { safeName } from '../../protocol/whisper-envelope.ts'
import { readingPage } from '../addresses.ts'
import { askHidden, firstLine, readInput } from '../ask.ts'
import { type Cli, client } from '../cli.ts'
import { type Add, type Given, whole } from '../declare.ts'
import { CliError, misuse } from '../exit.ts'
import { FOR_PURCHASE } from '../options.ts'
import { purchase, resume, savedAs, type Wanted, type WhisperTerms } from '../purchase.ts'
import { away, columns } from '../text.ts'
import { checkName, loadPulse, publicPart } from '../vault/saved.ts'

const TAKES = {
  '[file]': ['the file, or - for stdin', String, '-'],
  ...FOR_PURCHASE,
  '--reads <count>': [
    'how often it can be read; by default as often as the plan allows',
    whole(1, MAX_READS),
  ],
  '--reveal-at <time>': 'do not reveal it before this time, such as 2026-12-24T18:00:00Z',
  '--when-late <name>':
    'do not reveal it before this saved monitor, or the one of a switch id, falls silent',
  '--receipt': 'see when it was read, and be able to destroy it',
  '--password': 'ask for a password that the reader needs with the code',
  '--password-file <file>': 'take the password from the first line of a file',
} as const

type Options = Given<typeof TAKES>

/** `buy whisper` works, and is shown as `whisper send` alone. */
export const whisperSend = (command: 'whisper send' | 'buy whisper'): Add =>
  client({
    command: command.split(' ')[1] ?? '',
    says: 'encrypt a file or stdin on this machine, buy its reads, and show the code to share',
    isHidden: command === 'buy whisper',
    takes: TAKES,
    examples: [
      `mayfly ${command} contract.pdf --reads 1`,
      `pg_dump shop | mayfly ${command} --plan long --password`,
    ],
    async run(cli, options) {
      const { whenLate } = options
      const { name, saved } =
        options.resume === undefined
          ? await purchase(cli, await wantedOf(cli, options))
          : await resume(cli, checkName(options.resume))
      const { capability, baseUrl, planId } = saved
      if (capability.product !== 'whisper') throw new CliError(`${name} is not a whisper.`)
      const { code, expiresAt, receiptToken } = capability
      const readUrl = readingPage(baseUrl)
      // The code comes through stdin: other users of a machine see its command lines.
      const readCommand = `mayfly whisper read - --url ${baseUrl}`
      const toShare = { code, readUrl, readCommand, armedBy: armedBy(whenLate) }
      const ways = [
        ['The reader pastes it at', readUrl],
        ['or after this command', readCommand],
        ...(receiptToken === undefined
          ? []
          : [['You see when it was read', `mayfly status ${name}`]]),
      ]
      cli.answer(
        { name, planId, baseUrl, ...publicPart(capability), ...toShare },
        `${savedAs(cli, name)}It expires ${away(expiresAt, cli.now())}, ${expiresAt}\n\nEveryone who has this code can read the whisper. Share it with the same care as the content:\n\n${code}\n\n${columns(ways)}${armingOf(whenLate)}`,
      )
    },
  })

async function wantedOf(cli: Cli, options: Options): Promise<Wanted> {
  const { file, plan: planId, name, beside, reads: readLimit, whenLate: revealWhen } = options
  const terms = await termsOf(cli, { ...options, readLimit, revealWhen }, '--reveal-at')
  const password = await passwordOf(cli, options)
  const data = await readInput(cli, file, 'Type or paste what to send')
  if (data.length === 0) {
    const what = file === '-' ? 'nothing came on stdin' : `${file} is empty`
    throw misuse(`There is nothing to send: ${what}. Nothing was bought.`)
  }
  const fileName = file === '-' ? null : safeName(basename(file))
  const content = { data, ...(fileName === null ? {} : { name: fileName }) }
  const sealed = await sealWhisper(password === undefined ? content : { ...content, password })
  const whisper = { sealed, ...terms }
  return { product: 'whisper', planId, beside, name: name && checkName(name), whisper }
}

async function passwordOf(
  cli: Cli,
  { password: isAsked, passwordFile }: Options,
): Promise<string | undefined> {
  const isFile = passwordFile !== undefined
  if (!isFile && !isAsked) return undefined
  const password = isFile ? firstLine(passwordFile) : await askHidden('Password: ', cli.signal)
  if (password === '') throw misuse('The password is empty.')
  if (isFile || (await askHidden('Once more: ', cli.signal)) === password) return password
  throw misuse('The two passwords differ. Nothing was sent.')
}

/** The terms of a whisper. @param option what the caller calls its `revealAt`. @throws CliError */
export async function termsOf(
  cli: Cli,
  { readLimit, revealAt, receipt, revealWhen }: Record<string, unknown>,
  option: string,
): Promise<Omit<WhisperTerms, 'sealed'>> {
  return {
    readLimit: readLimit === undefined ? undefined : Number(readLimit),
    revealAt: revealAt === undefined ? undefined : timeOf(String(revealAt), option),
    receipt: receipt === true,
    revealWhen: revealWhen === undefined ? undefined : await switchOf(cli, String(revealWhen)),
  }
}

function timeOf(text: string, option: string): Date {
  const hasOffset = /(?:Z|[+-]\d{2}:\d{2})$/.test(text)
  if (hasOffset && !Number.isNaN(Date.parse(text))) return new Date(text)
  throw misuse(`${option} must be a time with its offset, such as 2026-12-24T18:00:00Z or …+01:00.`)
}

/** The ping that arms a switch, if its monitor is saved here. */
const armedBy = (whenLate: string | undefined): string | undefined =>
  whenLate === undefined || isId('pulse_switch', whenLate) ? undefined : `mayfly ping ${whenLate}`

/** What a switch still needs: without a ping after the purchase it stays shut for good. */
function armingOf(whenLate: string | undefined): string {
  if (whenLate === undefined) return ''
  const ping = armedBy(whenLate) ?? 'The owner of that switch pings its monitor once more.'
  return `\nIts switch is not armed yet. A ping that comes from now on arms it, and without one it never opens:\n\n  ${ping}\n\nOnce armed, it opens when the pings stop. The receipt says which it is: waiting, armed, open or dead.\n`
}

/** The switch of a saved monitor, or the id itself, which a monitor's owner has handed on. */
async function switchOf(cli: Cli, given: string): Promise<string> {
  if (isId('pulse_switch', given)) return given
  const { monitor } = loadPulse(cli, given)
  const { state } = await monitor.status()
  if (state !== 'operational') {
    const next = state === 'waiting' || state === 'late' ? ` First: mayfly ping ${given}` : ''
    throw misuse(`The switch of ${given} cannot be bound while the monitor is ${state}.${next}`)
  }
  return (await monitor.makeSwitch()).switchId
}
