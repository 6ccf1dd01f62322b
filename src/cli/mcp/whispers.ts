/** The tools for whispers, which are encrypted and decrypted here. */
import { createHash } from 'node:crypto'
import { MayflyError, openWhisper, parseWhisperCode, sealWhisper } from '../../client/index.ts'
import { utf8, utf8Text } from '../../lib/bytes.ts'
import type { PlanId } from '../../lib/product-names.ts'
import { STRANGER_NOTICE, strangerText } from '../../mcp-tools/stranger.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { openPurchase } from '../vault/purchases.ts'
import { checkName, findSaved } from '../vault/saved.ts'
import { fetchKept, keptBefore } from '../whisper/read.ts'
import { switchOf } from '../whisper/send.ts'
import { buy } from './buying.ts'
import type { Asking } from './confirm.ts'
import { settled } from './results.ts'
import type { Call } from './session.ts'

export type SendInput = {
  planId: PlanId
  name: string
  text: string
  readLimit?: number
  revealAt?: string
  receipt?: boolean
  revealWhen?: string
}

export type ReadWhisperInput = { code?: string; name?: string; maxTextBytes?: number }

/** The most bytes of a content of which text is made. A longer one is not for a model. */
const MAX_CONTENT_BYTES = 1024 * 1024

export async function sendWhisper(call: Asking, input: SendInput): Promise<object> {
  const { session, cli } = call
  const { planId, name, text } = input
  const digest = createHash('sha256').update(JSON.stringify(input)).digest('base64')
  const saved = findSaved(cli, name)
  if (saved !== null) {
    // Sealing never makes the same bytes twice, so only this process can tell a repeat.
    if (session.sent.get(name) === digest) return settled(session, name, saved)
    throw new CliError(
      `Something is saved as ${name} already, and nothing was sent or paid now. If the answer to an earlier call was lost, it was sent then: check_order shows it. For another text, choose another name.`,
    )
  }
  const isOpen = openPurchase(cli, checkName(name)) !== null
  if (isOpen && session.sent.get(name) !== digest) {
    throw new CliError(
      `A text is being sent as ${name}, and this may be another one. Nothing was paid now. To go on with it, call check_order with this name; for another text, choose another name.`,
    )
  }
  const terms = await termsOf(cli, input)
  session.sent.set(name, digest)
  return buy(call, {
    ...{ product: 'whisper', planId, name, digest },
    what: 'reads of an encrypted text',
    seal: async () => ({ sealed: await sealWhisper({ data: utf8(text) }), ...terms }),
  })
}

async function termsOf(cli: Cli, { readLimit, revealAt, receipt, revealWhen }: SendInput) {
  return {
    ...(readLimit === undefined ? {} : { readLimit }),
    ...(revealAt === undefined ? {} : { revealAt: timeOf(revealAt) }),
    ...(receipt ? ({ receipt: true } as const) : {}),
    ...(revealWhen === undefined ? {} : { revealWhen: await switchOf(cli, revealWhen) }),
  }
}

function timeOf(text: string): Date {
  const hasOffset = /(?:Z|[+-]\d{2}:\d{2})$/.test(text)
  if (hasOffset && !Number.isNaN(Date.parse(text))) return new Date(text)
  throw new CliError('revealAt must be a time with its offset, such as 2026-12-24T18:00:00Z.')
}

export async function readWhisper(call: Call, input: ReadWhisperInput): Promise<object> {
  const { session, cli } = call
  const { code, baseUrl } = codeOf(cli, input)
  const parsed = parseWhisperCode(code.trim())
  if (parsed === null) throw new MayflyError('invalid share code', 0)
  const { publicId, key, hasPassword } = parsed
  if (hasPassword) {
    throw new CliError(
      'This whisper needs a password, which must not go through a model. The user reads it with: mayfly whisper read. Nothing was spent.',
      EXIT.usage,
    )
  }
  // A read brings its bytes once. They stay here, encrypted, so that a lost answer can be repeated.
  const kept = keptBefore(cli, publicId, { keep: true })
  const fetched = kept
    ? { envelope: kept.envelope, kept }
    : await fetchKept(cli, { code: code.trim(), baseUrl, publicId }, { keep: true })
  const { data, name, mediaType } = await openWhisper(fetched.envelope, key)
  if (fetched.kept !== null) session.opened.add(fetched.kept.id)
  const text = data.length <= MAX_CONTENT_BYTES ? utf8Text(data) : null
  const said = (some: string | null) =>
    some === null ? null : strangerText(some, input.maxTextBytes)
  return {
    notice: STRANGER_NOTICE,
    content: said(text),
    contentBytes: data.length,
    fileName: said(name),
    mediaType: said(mediaType),
  }
}

function codeOf(cli: Cli, { code, name }: ReadWhisperInput): { code: string; baseUrl: string } {
  if ((code === undefined) === (name === undefined)) {
    throw new CliError('Give either a code or a name. Nothing was spent.', EXIT.usage)
  }
  if (code !== undefined) return { code, baseUrl: cli.url }
  const saved = name === undefined ? null : findSaved(cli, name)
  if (saved?.capability.product !== 'whisper' || saved.capability.code === undefined) {
    throw new CliError(`No whisper is saved as ${name}. Nothing was spent.`, EXIT.gone)
  }
  return { code: saved.capability.code, baseUrl: saved.baseUrl }
}
