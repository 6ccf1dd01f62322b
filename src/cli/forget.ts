/** `mayfly forget NAME`: deletes a saved capability or draft, but asks first if it was paid for. */
import type { Command } from 'commander'
import { type AnyCapability, MayflyError } from '../client/index.ts'
import { confirmDestroying } from './ask.ts'
import { type Cli, client } from './cli.ts'
import { readIfThere } from './data-folder.ts'
import {
  type Draft,
  dropDraft,
  forgetDraft,
  type OpenDraft,
  readDraft,
  resumeDraft,
} from './drafts.ts'
import { examples } from './examples.ts'
import { CliError, EXIT, endingOf } from './exit.ts'
import { collectPaid } from './purchase.ts'
import {
  checkName,
  draftFile,
  fileOf,
  findKept,
  forget,
  isPingOnly,
  type Kept,
  type Product,
  save,
} from './saved.ts'

export function addForget(program: Command): void {
  program
    .command('forget')
    .description('remove what is saved under a name; the service keeps its copy')
    .argument('<name>')
    .option('--yes', 'remove it without checking or asking; it cannot be restored')
    .addHelpText(
      'after',
      `${examples('mayfly forget hooks')}
It asks the service first. If an unfinished purchase turns out to be paid, it is collected and kept. What may
still be valid is only forgotten with --yes, because its tokens are nowhere else.
`,
    )
    .action(
      client<{ yes?: true }>(async (cli, { yes }, [name]) => {
        const isDraft = readIfThere(draftFile(cli, checkName(name))) !== null
        const isSaved = readIfThere(fileOf(cli, name)) !== null
        if (!isDraft && !isSaved) {
          throw new CliError(
            `Nothing is saved as ${name}. \`mayfly list\` shows what is.`,
            EXIT.gone,
          )
        }
        if (!yes && isSaved) await allowForgetting(cli, name)
        if (isDraft && (yes || isSaved)) forgetDraft(cli, name)
        else if (isDraft) await giveUp(cli, name)
        forget(cli, name)
        cli.answer({ name, forgotten: true }, `${name} is forgotten.\n`)
        return EXIT.ok
      }),
    )
}

/** Deletes a purchase without money in it. @throws CliError if there is, or may be, money. */
async function giveUp(cli: Cli, name: string): Promise<void> {
  if (readDraft(cli, name) === null) {
    return confirmDestroying(
      cli,
      name,
      `${draftFile(cli, name)}, which cannot be read and may have been paid`,
    )
  }
  const open = resumeDraft(cli, name)
  try {
    await giveUpLocked(cli, open)
  } finally {
    open.lock.release()
  }
}

async function giveUpLocked(cli: Cli, { name, draft }: OpenDraft): Promise<void> {
  const found = await lookUp(cli, draft)
  if ('capability' in found) {
    save(cli, name, { ...found, baseUrl: draft.baseUrl, planId: draft.planId })
    dropDraft(cli, name)
    throw new CliError(
      `${name} is paid, so it was collected and saved in ${fileOf(cli, name)}. To give that up: mayfly forget ${name} --yes`,
    )
  }
  // The draft may have the only copy of its bytes, if they came through a pipe.
  const bytes = draft.whisper
    ? `the content of the whisper ${name}, which is saved here alone`
    : null
  const lost = found.mayLose ?? bytes
  if (lost !== null) await confirmDestroying(cli, name, lost)
  dropDraft(cli, name)
}

/** Looks up a purchase: its capability, or what deleting it would lose, if anything. */
async function lookUp(
  cli: Cli,
  draft: Draft,
): Promise<{ capability: AnyCapability } | { mayLose: string | null }> {
  const key = `the key of a purchase at ${draft.baseUrl}`
  try {
    return { capability: await collectPaid(cli, draft) }
  } catch (error) {
    if (cli.signal.aborted) throw error
    if (error instanceof MayflyError) {
      if (NOTHING_IN_IT.has(error.phrase)) return { mayLose: null }
      if (error.phrase === 'price above the ceiling') {
        return {
          mayLose: `${key}. Its invoice is not paid yet and still stands: whoever pays it gets nothing then`,
        }
      }
    }
    const ending = endingOf(error, draft.baseUrl)
    if (ending === null) throw error
    return { mayLose: `${key}, which may be paid. ${withoutStop(ending.sentence)}` }
  }
}

/** The service's phrases for orders that can never be collected. */
const NOTHING_IN_IT = new Set(['order expired', 'order refunded', 'already delivered'])

/** @throws CliError if a capability is, or may be, still valid. */
async function allowForgetting(cli: Cli, name: string): Promise<void> {
  let saved: Kept | null
  try {
    saved = findKept(cli, name)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return confirmDestroying(
      cli,
      name,
      `${fileOf(cli, name)}, which cannot be read and may have tokens in it`,
    )
  }
  // What only pings is a copy: the owner's file has all of it.
  if (saved === null || isPingOnly(saved)) return
  const { capability, baseUrl } = saved
  const standing = await standingOf(cli, capability, baseUrl)
  if (standing === 'over') return
  const { product, expiresAt } = capability
  const end = product === 'whisper' ? '' : ` \`mayfly ${product} destroy ${name}\` ends it`
  const what = `the only copy of what opens ${name}, ${A[product]} ${
    standing === 'live' ? 'that is good' : 'that may be good'
  } until ${expiresAt}`
  await confirmDestroying(
    cli,
    name,
    standing === 'live' ? `${what}.${end}` : `${what}. ${standing.why}`,
  )
}

const A: Record<Product, string> = { catch: 'an inbox', pulse: 'a monitor', whisper: 'a whisper' }

type Standing = 'live' | 'over' | { why: string }

async function standingOf(cli: Cli, capability: AnyCapability, baseUrl: string): Promise<Standing> {
  const { product, expiresAt } = capability
  // A request for a whisper would spend a read.
  if (product === 'whisper') return Date.parse(expiresAt) <= cli.now() ? 'over' : 'live'
  const mayfly = cli.mayfly(baseUrl)
  try {
    const isOver =
      product === 'catch'
        ? (await mayfly.catch(capability).status()).status === 'expired'
        : (await mayfly.pulse(capability).status()).state === 'expired'
    return isOver ? 'over' : 'live'
  } catch (error) {
    if (cli.signal.aborted) throw error
    if (error instanceof MayflyError && (error.status === 401 || error.status === 404)) {
      return 'over'
    }
    const ending = endingOf(error, baseUrl)
    if (ending === null) throw error
    return { why: withoutStop(ending.sentence) }
  }
}

const withoutStop = (sentence: string): string => sentence.replace(/\.$/, '')
