/** `mayfly list|show|open|move|destroy`: what is saved here. */
import { spawn } from 'node:child_process'
import { isPingOnly, type Kept } from '../client/capability-file.ts'
import type { PurchaseState } from '../client/index.ts'
import { ingestUrlOf, readingPage, sharedAddresses } from './addresses.ts'
import { confirm } from './ask.ts'
import { type Cli, client, givenUrl, isSameService } from './cli.ts'
import { NEEDED } from './declare.ts'
import { anyEnding, CliError, EXIT, notThere } from './exit.ts'
import { ENDED, GONE, stateOf } from './status.ts'
import { away, columns } from './text.ts'
import { continuing, findPurchase, type OpenPurchase, openPurchases } from './vault/purchases.ts'
import {
  allKept,
  checkReceipt,
  clientOf,
  forget,
  load,
  loadKept,
  publicPart,
  rememberState,
  saveAgain,
} from './vault/saved.ts'

const addList = client({
  command: 'list',
  says: 'list what is saved here, when it ends, and what its service said of it last',
  takes: { '--check': 'ask each service now' },
  examples: ['mayfly list', 'mayfly list --check', 'mayfly list --json'],
  async run(cli, { check }) {
    const problems = check ? await checkAll(cli) : new Map<string, string>()
    const listed = [
      ...allKept(cli).map((saved) => listedSaved(cli, saved, problems.get(saved.name))),
      ...openPurchases(cli).map(listedPurchase),
    ]
    const rows = [
      ['NAME', 'PRODUCT', 'PLAN', 'STATE', 'SERVICE'],
      ...listed.map(([{ name, product, planId, baseUrl }, text]) =>
        [name, product, planId, text, baseUrl].map((cell) => String(cell ?? '-')),
      ),
    ]
    const hasOneService = new Set(listed.map(([{ baseUrl }]) => baseUrl)).size <= 1
    cli.answer(
      listed.map(([json]) => json),
      listed.length > 0
        ? columns(hasOneService ? rows.map((row) => row.slice(0, -1)) : rows)
        : 'Nothing is saved here yet. To buy an inbox: mayfly buy catch\n',
    )
    return problems.size === 0 ? EXIT.ok : EXIT.later
  },
})

/** How many services or names are asked at once. */
const AT_ONCE = 8

/** Asks for the state of everything, and remembers it. Answers why some could not be asked, by name. */
async function checkAll(cli: Cli): Promise<Map<string, string>> {
  const problems = new Map<string, string>()
  const left = allKept(cli)
  const askNext = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { name, kept } = next
      if (kept === null) continue
      try {
        const state = await stateOf(cli.mayflyAt(kept.baseUrl), kept)
        if (state !== null) rememberState(cli, name, state)
      } catch (error) {
        problems.set(name, anyEnding(error, kept.baseUrl).sentence)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, askNext))
  return problems
}

/** What is listed, as JSON; and its state as text. */
type Listed = [json: { name: string; [more: string]: unknown }, text: string]

function listedSaved(
  cli: Cli,
  { name, kept, said }: ReturnType<typeof allKept>[number],
  problem?: string,
): Listed {
  // One that is damaged hides no other.
  if (kept === null) return [{ name, state: 'unreadable' }, 'cannot be read']
  const { capability, planId = null, baseUrl } = kept
  const { product, publicId, expiresAt } = capability
  const isOver = Date.parse(expiresAt) <= cli.now()
  const ends = `${isOver ? 'expired' : 'ends'} ${away(expiresAt, cli.now())}`
  const state = isOver ? 'expired' : (said?.state ?? 'saved')
  const saidAt = said && new Date(said.at).toISOString()
  const pingOnly = isPingOnly(kept) || undefined
  const words = [
    isOver || !said || !saidAt ? ends : stated(said.state, ends, away(saidAt, cli.now())),
    pingOnly && 'pings only',
    problem && `could not be asked: ${problem}`,
  ]
  return [
    { name, product, planId, state, saidAt, expiresAt, publicId, baseUrl, pingOnly, problem },
    words.filter(Boolean).join(', '),
  ]
}

function stated(state: string, ends: string, when: string): string {
  // Nothing comes any more, though there is something to show.
  const over = state === 'exhausted' ? 'used up' : ENDED.get(state)
  return over === undefined
    ? `${state} (says the service ${when}), ${ends}`
    : `${over}, says the service ${when}`
}

function listedPurchase({ name, record }: OpenPurchase): Listed {
  const { paymentHash, amountSats } = record.invoices.at(-1) ?? {}
  return [
    {
      name,
      product: record.product ?? undefined,
      planId: record.planId,
      state: 'buying',
      payment: record.state,
      wallet: record.wallet,
      baseUrl: record.service,
      paymentHash,
      amountSats,
    },
    `${PAYMENT[record.state]}: ${continuing(name, record)}`,
  ]
}

/** What is known of the payment of a purchase. */
const PAYMENT: Record<PurchaseState, string> = {
  quoted: 'interrupted',
  paying: 'perhaps paid, nobody knows yet',
  failed: 'not paid, says the wallet',
  paid: 'paid, and not collected',
  delivered: 'paid',
}

const addShow = client({
  command: 'show',
  says: 'show what is saved under a name, without its tokens',
  takes: {
    '<name>': '',
    '--reveal': 'show its tokens too: everyone who sees them can use it',
  },
  examples: ['mayfly show hooks', 'mayfly show hooks --reveal --json | jq -r .ingestToken'],
  async run(cli, { name, reveal }) {
    const saved = loadKept(cli, name)
    const { capability, baseUrl, planId = null } = saved
    const shown = {
      name,
      baseUrl,
      planId,
      ...(reveal ? { ...capability } : publicPart(capability)),
      ...ingestUrlOf(saved),
    }
    const rows = Object.entries(shown).map(([field, value]) => [field, String(value ?? '-')])
    if (!reveal) rows.push(['tokens', 'hidden; --reveal shows them'])
    cli.answer(shown, columns(rows))
  },
})

const addOpen = client({
  command: 'open',
  says: 'open the page of what is saved under a name, in a browser',
  takes: { '<name>': '' },
  examples: ['mayfly open hooks', 'mayfly open backup --json'],
  async run(cli, { name }) {
    const saved = loadKept(cli, name)
    const url = await pageOf(cli, saved)
    cli.answer({ name, url }, `${url}\n`)
    if (!/\/status\//.test(url)) {
      cli.note(
        `The page asks for what is saved, unless that browser has it: mayfly export ${name} --out ${name}.json`,
      )
    }
    if (!process.stdout.isTTY) return
    const opener = process.platform === 'darwin' ? 'open' : 'xdg-open'
    // Without a browser the address was printed, which is enough.
    spawn(opener, [url], { stdio: 'ignore', detached: true })
      .on('error', () => undefined)
      .unref()
  },
})

/** No token is in it. A monitor that is shared has a page that needs none. */
async function pageOf(cli: Cli, saved: Kept): Promise<string> {
  const { capability, baseUrl } = saved
  if (capability.product === 'catch') return `${baseUrl}/catch`
  if (capability.product === 'whisper') {
    return capability.receiptToken === undefined ? readingPage(baseUrl) : `${baseUrl}/receipt`
  }
  const page = `${baseUrl}/pulse`
  if (isPingOnly(saved) || !('ownerToken' in capability)) return page
  const status = await cli.mayfly(baseUrl).pulse(capability).status()
  return sharedAddresses(baseUrl, status).statusUrl ?? page
}

const addMove = client({
  command: 'move',
  says: 'change the service of what is saved under a name, after its address has changed',
  takes: {
    '<name>': '',
    '--to <url>': ['the new address, which must know it', String, NEEDED],
  },
  examples: ['mayfly move hooks --to https://mayfly.example'],
  async run(cli, { name, to }) {
    const url = givenUrl('--to', to)
    const kept = loadKept(cli, name)
    if (findPurchase(cli, name) !== null) {
      throw new CliError(
        `${name} is being extended at ${kept.baseUrl}: mayfly extend ${name} ends that first.`,
      )
    }
    const mayfly = cli.mayflyAt(url)
    const state = await stateOf(mayfly, kept)
    if (state === GONE) {
      throw notThere(`${url} does not know ${name}, so nothing was changed.`)
    }
    // To ask for this one would spend a read or a ping, so the service alone is asked.
    if (state === null) await mayfly.catalog()
    saveAgain<Kept>(cli, name, (saved) => ({ ...saved, baseUrl: url }))
    const how = state === null ? 'It answers, and was not asked for it.' : `It is ${state}.`
    const said = isSameService(url, kept.baseUrl) ? 'was' : 'is now'
    cli.answer({ name, baseUrl: url, state }, `${name} ${said} of ${url}. ${how}\n`)
  },
})

const addDestroy = client({
  command: 'destroy',
  says: 'destroy an inbox, a monitor or a whisper for good, with all that is in it',
  takes: {
    '<name>': 'an inbox, a monitor, or a whisper that was sent with --receipt',
    '--yes': 'do not ask for confirmation; this cannot be undone',
  },
  examples: ['mayfly destroy hooks --yes'],
  async run(cli, { name, yes }) {
    const saved = load(cli, name)
    const { product } = saved.capability
    checkReceipt(name, saved.capability)
    if (!yes) await confirm(cli, name, `This destroys ${name}${WITH[product]}, for good.`)
    await clientOf(cli, saved).destroy()
    // The receipt of a whisper tells for a day when it was read.
    if (product === 'whisper') rememberState(cli, name, 'destroyed')
    else forget(cli, name)
    const rest =
      product === 'whisper'
        ? `For a day, this still shows when it was read: mayfly status ${name}`
        : 'It is removed here.'
    cli.answer({ name, destroyed: true }, `${name} is destroyed. ${rest}\n`)
  },
})

const WITH = {
  catch: ' and all its webhooks',
  pulse: ' and its shared status',
  whisper: ' and the reads that are left',
}

export const savedCommands = [addList, addShow, addOpen, addMove, addDestroy]
