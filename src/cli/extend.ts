/**
 * `mayfly extend`: buys the plan of a saved inbox or monitor once more, before it ends. The key is written before the
 * first request, so that a command that was killed is continued by the next one, and nothing is paid twice.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { MayflyError, type SavedCapability } from '../client/index.ts'
import { parseJson } from '../lib/json.ts'
import type { PlanId } from '../lib/product-names.ts'
import { type Cli, client } from './cli.ts'
import { overwrite, readIfThere, writeNew } from './data-folder.ts'
import { examples } from './examples.ts'
import { CliError, EXIT, endingOf } from './exit.ts'
import { withWallet } from './invoice.ts'
import { takeLock } from './lock.ts'
import { payerOf, savedAs } from './purchase.ts'
import { checkName, fileOf, findKept, load, save, textOf } from './saved.ts'
import { away } from './text.ts'

/** An extension under way. */
type Draft = {
  version: 1
  planId: PlanId
  idempotencyKey: string
  /** After a wallet has paid: the proof, which a replacement takes. */
  preimage?: string
}

/** What extending a capability needs of its file. */
type Held = SavedCapability & {
  capability: Extract<SavedCapability['capability'], { ownerToken: string }>
}

export function addExtend(program: Command): void {
  program
    .command('extend')
    .description('buy the plan of an inbox or a monitor once more, before it ends')
    .argument('<name>', 'its name')
    .addHelpText(
      'after',
      examples(
        'mayfly extend hooks                     shows an invoice and waits for the payment',
        'MAYFLY_WALLET_URL=simulator: mayfly extend hooks',
      ),
    )
    .action(
      client(async (cli, _options, [given]) => {
        const name = checkName(given)
        const held = heldAs(cli, name)
        const lock = takeLock(`${draftFile(cli, name)}.lock`)
        if ('heldBy' in lock) {
          throw new CliError(`Process ${lock.heldBy} is extending ${name}. Wait for it.`)
        }
        try {
          await extend(cli, name, held)
        } finally {
          lock.release()
        }
        return EXIT.ok
      }),
    )
}

async function extend(cli: Cli, name: string, held: Held): Promise<void> {
  const before = readDraft(cli, name)
  if (before) cli.note(`Continuing the extension of ${name}, which was interrupted.`)
  const draft = before ?? (await begin(cli, name, held))
  let isBegun = before !== null
  try {
    const done = await pay(cli, { name, held, draft }, () => {
      isBegun = true
    })
    if ('expiresAt' in done) return keepEnd(cli, { name, held, expiresAt: done.expiresAt })
    const free = freeName(cli, name)
    save(cli, free, { ...held, capability: done.replacement, planId: draft.planId })
    drop(cli, name)
    cli.answer(
      { name: free, extended: false, publicId: done.replacement.publicId },
      `${name} had ended before it was paid, so the service sold a new one in its place.\n${savedAs(cli, free)}`,
    )
  } catch (error) {
    if (error instanceof MayflyError && error.phrase === 'already delivered') {
      return keepEnd(cli, { name, held, expiresAt: await endNow(cli, held) })
    }
    if (isWorthless(error, isBegun)) drop(cli, name)
    else throw goOn(cli, { name, held, error })
    throw error
  }
}

/** Pays or shows the invoice of the draft, or collects what was paid. */
function pay(
  cli: Cli,
  { name, held, draft }: { name: string; held: Held; draft: Draft },
  onBegun: () => void,
) {
  const mayfly = cli.mayfly(held.baseUrl)
  const { planId, idempotencyKey, preimage } = draft
  const sold = { product: held.capability.product, planId }
  return withWallet(cli, async (wallet) => {
    const payer = payerOf(cli, {
      ...{ mayfly, wallet, sold },
      onProgress({ preimage: proof }) {
        onBegun()
        if (proof !== undefined) write(cli, name, { ...draft, preimage: proof })
      },
    })
    try {
      return await mayfly.extend(held.capability, {
        ...{ planId, idempotencyKey, signal: cli.signal },
        ...(preimage === undefined ? {} : { preimage }),
        ...payer.terms,
      })
    } finally {
      payer.end()
    }
  })
}

/** The capability, if it can be extended. @throws CliError */
function heldAs(cli: Cli, name: string): Held {
  const saved = load(cli, name)
  const { capability } = saved
  if (capability.product === 'whisper') {
    throw new CliError(`${name} is a whisper, which cannot be extended.`, EXIT.usage)
  }
  return { ...saved, capability }
}

/** Writes the key before anything is requested with it. */
async function begin(cli: Cli, name: string, held: Held): Promise<Draft> {
  const planId = held.planId ?? (await statusOf(cli, held)).planId
  const draft: Draft = { version: 1, planId, idempotencyKey: crypto.randomUUID() }
  if (writeNew(draftFile(cli, name), `${JSON.stringify(draft)}\n`)) return draft
  throw new CliError(
    `${draftFile(cli, name)} cannot be read. Move it to another place or restore it first.`,
  )
}

function keepEnd(
  cli: Cli,
  { name, held, expiresAt }: { name: string; held: Held; expiresAt: string },
): void {
  const end = Date.parse(expiresAt) > Date.parse(held.capability.expiresAt) ? expiresAt : null
  // The end of an earlier extension may be repeated after a later one.
  const kept = end ?? held.capability.expiresAt
  const capability = { ...held.capability, expiresAt: kept }
  overwrite(fileOf(cli, name), textOf({ ...held, capability }))
  drop(cli, name)
  cli.answer(
    { name, extended: true, expiresAt: kept },
    `${name} is extended. It expires ${away(kept, cli.now())}, ${kept}\n`,
  )
}

function statusOf(cli: Cli, { baseUrl, capability }: Held) {
  const mayfly = cli.mayfly(baseUrl)
  return capability.product === 'catch'
    ? mayfly.catch(capability).status()
    : mayfly.pulse(capability).status()
}

const endNow = async (cli: Cli, held: Held): Promise<string> =>
  (await statusOf(cli, held)).expiresAt

/** Whether an extension that failed holds no money: then the next one begins anew. */
function isWorthless(error: unknown, isBegun: boolean): boolean {
  if (!(error instanceof MayflyError)) return error instanceof CliError && !isBegun
  if (error.phrase === 'order expired' || error.phrase === 'order refunded') return true
  return !isBegun && (error.phrase === 'price above the ceiling' || error.status >= 400)
}

function goOn(
  cli: Cli,
  { name, held, error }: { name: string; held: Held; error: unknown },
): unknown {
  const next = `To continue: mayfly extend ${name}`
  if (cli.signal.aborted) {
    cli.warn(`Interrupted. ${next}`)
    return error
  }
  const ending = endingOf(error, held.baseUrl)
  return ending === null ? error : new CliError(`${ending.sentence} ${next}`, ending.code)
}

function freeName(cli: Cli, name: string): string {
  for (let number = 2; ; number++) {
    const free = `${name.slice(0, 58)}-${number}`
    if (findKept(cli, free) === null) return free
  }
}

function readDraft(cli: Cli, name: string): Draft | null {
  const text = readIfThere(draftFile(cli, name))
  const draft = text === null ? null : (parseJson(text) as Draft | null | undefined)
  return draft?.version === 1 ? draft : null
}

const write = (cli: Cli, name: string, draft: Draft): void =>
  overwrite(draftFile(cli, name), `${JSON.stringify(draft)}\n`)

const drop = (cli: Cli, name: string): void => rmSync(draftFile(cli, name), { force: true })

const draftFile = ({ folder }: Pick<Cli, 'folder'>, name: string): string =>
  join(folder, 'extensions', `${name}.json`)
