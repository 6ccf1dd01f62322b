/** Where the tokens of `mayfly mcp` are: in the vault, by name. None of them goes to the host. */
import type { Kept } from '../../client/capability-file.ts'
import { createHttp } from '../../client/http.ts'
import { MayflyError, openWhisper, parseWhisperCode } from '../../client/index.ts'
import { utf8Text } from '../../lib/bytes.ts'
import type { Product } from '../../lib/product-names.ts'
import { type Api, apiBy, Refusal } from '../../tools/answers.ts'
import { type Brought, type Context, type Held, type Roles, text } from '../../tools/tool.ts'
import type { Cli } from '../cli.ts'
import { saw, seenOf } from '../vault/listening.ts'
import { openPurchase } from '../vault/purchases.ts'
import { A, allKept, findKept, findSaved, forget, saveToken } from '../vault/saved.ts'
import { fetchKept } from '../whisper/read.ts'
import { type Call, canAsk, confirm } from './session.ts'

/** How many saved names are listed. */
const MAX_NAMES = 50

/** A service, asked with a token or without. */
export function apiOf(cli: Cli, baseUrl: string, token?: string): Api {
  const http = createHttp(baseUrl, cli.traced(globalThis.fetch))
  return apiBy(async (asked) => {
    const { status, body, headers } = await http.request({
      ...asked,
      signal: cli.signal,
      token,
      // A signal that is recorded twice says the same.
      isRepeatable: asked.method === 'GET' || asked.path.startsWith('/p/'),
    })
    return { status, body, header: (name) => headers.get(name) ?? undefined }
  })
}

export function secretsOf(call: Call): Context['secrets'] {
  const { cli, args } = call
  return {
    find: async (roles) => heldAs(cli, text(args.name), roles),
    alertInbox({ inbox }) {
      const { capability } = keptAs(cli, inbox)
      if (capability.product === 'catch') {
        return { inbox: capability.publicId, ingestToken: capability.ingestToken }
      }
      throw new Refusal(
        `${inbox} is ${A[capability.product]}. ${savedNames(cli)} Nothing was changed.`,
      )
    },
    readWhisper: () => readWhisper(call),
    async confirm(message, { publicId }, byHand) {
      if (byHand && !canAsk(call)) throw new Refusal(`${byHand} ${UNDONE}`)
      await confirm(call, { message, about: [message, publicId], refusal: UNDONE })
    },
  }
}

const UNDONE = 'Nothing was changed.'

/** What is saved under a name, with the token for a role. @throws Refusal that lists what is saved. */
export function heldAs(cli: Cli, name: string, roles: Roles): Held {
  const { capability, baseUrl } = keptAs(cli, name)
  const { product, publicId } = capability
  const role = roles[product]
  if (role === undefined) {
    const wanted = (Object.keys(roles) as Product[]).map((some) => A[some]).join(' or ')
    throw new Refusal(`${name} is ${A[product]}, and this tool takes ${wanted}. ${savedNames(cli)}`)
  }
  const token = (capability as Record<string, string | undefined>)[`${role}Token`]
  if (token === undefined) {
    const why = product === 'whisper' ? 'was bought without a receipt' : 'is saved for pings only'
    throw new Refusal(`${name} ${why}, so this tool cannot use it. Nothing was done.`)
  }
  return {
    ...apiOf(cli, baseUrl, token),
    product,
    publicId,
    path: `/api/${product}/${publicId}`,
    origin: baseUrl,
    label: name,
    seen: () => seenOf(cli, publicId),
    saw: (sequences, upTo) => saw(cli, publicId, { sequences, upTo }),
    keep: (kind, next) => saveToken(cli, name, { publicId, [`${kind}Token`]: next }),
    // The receipt of a whisper still tells for a day when it was read.
    ...(product === 'whisper' ? {} : { forget: () => forget(cli, name) }),
  }
}

function keptAs(cli: Cli, name: string): Kept {
  const kept = findKept(cli, name)
  if (kept !== null) return kept
  throw new Refusal(
    openPurchase(cli, name) === null
      ? `Nothing is saved as ${name}. ${savedNames(cli)}`
      : `The purchase of ${name} is not finished: call check_order with this name.`,
  )
}

/** The names that exist, for a host at its start and in errors. */
export function savedNames(cli: Cli): string {
  const all = allKept(cli).flatMap(({ name, kept }) =>
    kept ? [`${name} (${A[kept.capability.product].split(' ')[1]})`] : [],
  )
  const more = all.length > MAX_NAMES ? ', and others' : ''
  return all.length === 0
    ? 'Nothing is saved yet.'
    : `Saved: ${all.slice(0, MAX_NAMES).join(', ')}${more}.`
}

async function readWhisper({ session, cli, args }: Call): Promise<Brought> {
  const { code, baseUrl } = codeOf(cli, args)
  const parsed = parseWhisperCode(code.trim())
  if (parsed === null) throw new MayflyError('invalid share code', 0)
  const { publicId, key, hasPassword } = parsed
  if (hasPassword) {
    throw new Refusal(
      'This whisper needs a password, which must not go through a model. The user reads it with: mayfly whisper read. Nothing was spent.',
    )
  }
  // A read brings its bytes once. They stay here, encrypted, so that a lost answer can be repeated.
  const { envelope, kept } = await fetchKept(cli, { code: code.trim(), baseUrl, publicId })
  const { data, name, mediaType } = await openWhisper(envelope, key)
  if (kept !== null) session.opened.add(kept.id)
  return { text: utf8Text(data), bytes: data.length, fileName: name, mediaType }
}

function codeOf(
  cli: Cli,
  { code, name }: Record<string, unknown>,
): { code: string; baseUrl: string } {
  if ((code === undefined) === (name === undefined)) {
    throw new Refusal('Give either a code or a name. Nothing was spent.')
  }
  if (code !== undefined) return { code: text(code), baseUrl: cli.url }
  const kept = findSaved(cli, text(name))
  if (kept?.capability.product !== 'whisper' || kept.capability.code === undefined) {
    throw new Refusal(`No whisper is saved as ${name}. ${savedNames(cli)} Nothing was spent.`)
  }
  return { code: kept.capability.code, baseUrl: kept.baseUrl }
}
