/** `mayfly list|show|export|import`: what is saved here. */
import { readFileSync } from 'node:fs'
import { text as readStream } from 'node:stream/consumers'
import type { Command } from 'commander'
import {
  type AnyCapability,
  formatCapability,
  type PurchaseRecord,
  type PurchaseState,
  parseCapability,
} from '../client/index.ts'
import { isObject, objectIn, parseJson } from '../lib/json.ts'
import { ingestUrlOf } from './addresses.ts'
import { type Cli, client } from './cli.ts'
import { withFile } from './data-folder.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { addExport } from './export.ts'
import { addForget } from './forget.ts'
import { savedAs } from './purchase.ts'
import { away, columns } from './text.ts'
import { importPurchase, type OpenPurchase, openPurchases } from './vault/purchases.ts'
import {
  allKept,
  checkName,
  findKept,
  isPingOnly,
  type Kept,
  loadKept,
  parseKept,
  publicPart,
  save,
} from './vault/saved.ts'

export function addSavedCommands(program: Command): void {
  addList(program)
  addShow(program)
  addForget(program)
  addExport(program)
  addImport(program)
}

function addList(program: Command): void {
  program
    .command('list')
    .description('list what is saved here, and when it expires')
    .addHelpText('after', examples('mayfly list', 'mayfly list --json'))
    .action(
      client(async (cli) => {
        const listed = [
          ...allKept(cli).map(({ name, kept }) => listedSaved(cli, name, kept)),
          ...openPurchases(cli).map((open) => listedPurchase(cli, open)),
        ]
        const rows = listed.map(({ json, text }) => [
          json.name,
          json.product ?? '-',
          json.planId ?? '-',
          text,
        ])
        cli.answer(
          listed.map(({ json }) => json),
          rows.length > 0
            ? columns([['NAME', 'PRODUCT', 'PLAN', 'STATE'], ...rows])
            : 'Nothing is saved here yet. To buy an inbox: mayfly buy catch\n',
        )
        return EXIT.ok
      }),
    )
}

type Listed = {
  json: {
    name: string
    product?: string
    planId?: string | null
    state: string
    [more: string]: unknown
  }
  /** The state as text. */
  text: string
}

function listedSaved(cli: Cli, name: string, saved: Kept | null): Listed {
  // One that is damaged hides no other.
  if (saved === null) return { json: { name, state: 'unreadable' }, text: 'cannot be read' }
  const { capability, planId = null, baseUrl } = saved
  const { product, publicId, expiresAt } = capability
  const isOver = Date.parse(expiresAt) <= cli.now()
  const state = isOver ? 'expired' : 'saved'
  const pingOnly = isPingOnly(saved)
  return {
    json: {
      ...{ name, product, planId, state, expiresAt, publicId, baseUrl },
      ...(pingOnly ? { pingOnly } : {}),
    },
    text: `${isOver ? 'expired' : 'ends'} ${away(expiresAt, cli.now())}${pingOnly ? ', pings only' : ''}`,
  }
}

function listedPurchase(cli: Cli, { name, record }: OpenPurchase): Listed {
  const { product, planId, service, invoices } = record
  const again =
    product === null
      ? 'mayfly pay INVOICE'
      : record.extends === undefined
        ? `mayfly buy ${product} --resume ${name}`
        : `mayfly extend ${name}`
  const { paymentHash, amountSats } = invoices.at(-1) ?? {}
  return {
    json: {
      name,
      ...(product === null ? {} : { product }),
      planId,
      ...{ state: 'buying', payment: record.state, wallet: record.wallet },
      ...{ baseUrl: service, paymentHash, amountSats },
    },
    text: `${PAYMENT[record.state](cli, record)}: ${again}`,
  }
}

/** What is known of the payment of a purchase. */
const PAYMENT: Record<PurchaseState, (cli: Cli, record: PurchaseRecord) => string> = {
  quoted: () => 'interrupted',
  paying: () => 'perhaps paid, nobody knows yet',
  failed: () => 'not paid, says the wallet',
  paid: () => 'paid, and not collected',
  delivered: () => 'paid',
}

function addShow(program: Command): void {
  program
    .command('show')
    .description('show what is saved under a name, without its tokens')
    .argument('<name>')
    .option('--reveal', 'show its tokens too: whoever sees them can use it')
    .addHelpText(
      'after',
      examples('mayfly show hooks', 'mayfly show hooks --reveal --json | jq -r .ingestToken'),
    )
    .action(
      client<{ reveal?: true }>(async (cli, { reveal }, [name]) => {
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
        return EXIT.ok
      }),
    )
}

function addImport(program: Command): void {
  program
    .command('import')
    .description('save a capability from a file, or from stdin with -')
    .argument(
      '<file>',
      'a file that `buy` saved or `export` wrote, or the `resource` that a purchase returned',
    )
    .requiredOption('--name <name>', 'the name to save it under')
    .addHelpText('after', examples('mayfly import hooks.json --name hooks'))
    .action(
      client<{ name: string }>(async (cli, { name }, [file]) => {
        const text =
          file === '-'
            ? await readStream(process.stdin)
            : withFile(file, () => readFileSync(file, 'utf8'))
        const { purchase } = objectIn(text) ?? {}
        if (isRecord(purchase)) {
          if (findKept(cli, name) !== null) save(cli, name, loadKept(cli, name))
          importPurchase(cli, checkName(name), purchase)
          cli.answer(
            { name, state: 'buying' },
            `The purchase ${name} is here. \`mayfly list\` shows how to go on.\n`,
          )
          return EXIT.ok
        }
        const saved = savedIn(text, cli.url)
        save(cli, name, saved)
        cli.answer(
          { name, baseUrl: saved.baseUrl, ...publicPart(saved.capability) },
          savedAs(cli, name),
        )
        return EXIT.ok
      }),
    )
}

/** Whether this is a purchase that `export` wrote. */
const isRecord = (value: unknown): value is PurchaseRecord =>
  isObject(value) &&
  value.version === 1 &&
  typeof value.idempotencyKey === 'string' &&
  Number.isSafeInteger(value.revision) &&
  typeof value.state === 'string' &&
  value.state in PAYMENT &&
  Array.isArray(value.invoices) &&
  value.invoices.every((invoice) => isObject(invoice) && typeof invoice.bolt11 === 'string')

/** @throws CliError for text that is neither a capability file nor the answer to a purchase. */
function savedIn(text: string, baseUrl: string): Kept {
  const value = parseJson(text)
  const isAnswer = typeof value === 'object' && value !== null && 'resource' in value
  const saved = parseKept(text) ?? fromAnswer(isAnswer ? value.resource : value, baseUrl)
  if (saved) return saved
  throw new CliError(
    'That is not a capability: neither a file that `mayfly buy` saves, nor the answer to a purchase.',
    EXIT.usage,
  )
}

function fromAnswer(capability: unknown, baseUrl: string): Kept | null {
  try {
    return parseCapability(formatCapability({ capability: capability as AnyCapability, baseUrl }))
  } catch {
    // Any missing member means that it is not a capability.
    return null
  }
}
