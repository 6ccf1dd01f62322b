/** `mayfly list|show|forget|import`: what is saved in the data folder. */
import { readFileSync } from 'node:fs'
import { text as readStream } from 'node:stream/consumers'
import type { Command } from 'commander'
import {
  type AnyCapability,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from '../client/index.ts'
import { client } from './cli.ts'
import { withFile } from './data-folder.ts'
import { names as draftNames, dropDraft, readDraft } from './drafts.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { savedAs } from './purchase.ts'
import {
  checkName,
  fileOf,
  forget,
  load,
  parseJson,
  publicPart,
  save,
  savedNames,
} from './saved.ts'
import { away, columns } from './text.ts'

export function addSavedCommands(program: Command): void {
  addList(program)
  addShow(program)
  addForget(program)
  addImport(program)
}

function addList(program: Command): void {
  program
    .command('list')
    .description('list what is saved here, and when it ends')
    .addHelpText('after', examples('mayfly list', 'mayfly list --json'))
    .action(
      client(async (cli) => {
        const saved = savedNames(cli).map((name) => {
          const { capability, planId = null, baseUrl } = load(cli, name)
          const { product, publicId, expiresAt } = capability
          const state = Date.parse(expiresAt) > cli.now() ? 'saved' : 'expired'
          return { name, product, planId, state, expiresAt, publicId, baseUrl }
        })
        const buying = draftNames(cli).flatMap((name) => {
          const draft = readDraft(cli, name)
          if (!draft) return []
          const { product, planId, baseUrl } = draft
          return [{ name, product, planId, state: 'buying', baseUrl }]
        })
        const rows = [
          ...saved.map(({ name, product, planId, state, expiresAt }) => [
            name,
            product,
            planId ?? '-',
            state === 'expired'
              ? `expired ${away(expiresAt, cli.now())}`
              : `ends ${away(expiresAt, cli.now())}`,
          ]),
          ...buying.map(({ name, product, planId }) => [
            name,
            product,
            planId,
            `interrupted: mayfly buy ${product} --resume ${name}`,
          ]),
        ]
        cli.answer(
          [...saved, ...buying],
          rows.length > 0
            ? columns([['NAME', 'PRODUCT', 'PLAN', 'STATE'], ...rows])
            : 'Nothing is saved here yet. `mayfly buy catch` buys an inbox.\n',
        )
        return EXIT.ok
      }),
    )
}

function addShow(program: Command): void {
  program
    .command('show')
    .description('show what is saved under a name, without its tokens')
    .argument('<name>')
    .option('--reveal', 'with its tokens: whoever sees them can use it')
    .addHelpText(
      'after',
      examples('mayfly show hooks', 'mayfly show hooks --reveal --json | jq -r .ingestToken'),
    )
    .action(
      client<{ reveal?: true }>(async (cli, { reveal }, name: string) => {
        const { capability, baseUrl, planId = null } = load(cli, name)
        const shown = {
          name,
          baseUrl,
          planId,
          ...(reveal ? { ...capability } : publicPart(capability)),
        }
        const rows = Object.entries(shown).map(([field, value]) => [field, String(value ?? '-')])
        if (!reveal) rows.push(['tokens', 'hidden; --reveal shows them'])
        cli.answer({ ...shown, file: fileOf(cli, name) }, columns(rows))
        return EXIT.ok
      }),
    )
}

function addForget(program: Command): void {
  program
    .command('forget')
    .description('remove what is saved under a name; nothing is destroyed on the service')
    .argument('<name>')
    .addHelpText('after', examples('mayfly forget hooks'))
    .action(
      client(async (cli, _options, name: string) => {
        const [saved, draft] = [forget(cli, name), dropDraft(cli, checkName(name))]
        if (!saved && !draft) {
          throw new CliError(
            `Nothing is saved as ${name}. \`mayfly list\` shows what is.`,
            EXIT.gone,
          )
        }
        cli.answer({ name, forgotten: true }, `${name} is forgotten.\n`)
        return EXIT.ok
      }),
    )
}

function addImport(program: Command): void {
  program
    .command('import')
    .description('save a capability from a file, or from stdin with -')
    .argument('<file>', 'what `buy` saved, or the `resource` that a purchase returned')
    .requiredOption('--name <name>', 'the name to save it under')
    .addHelpText('after', examples('mayfly import hooks.json --name hooks'))
    .action(
      client<{ name: string }>(async (cli, { name }, file: string) => {
        const text =
          file === '-'
            ? await readStream(process.stdin)
            : withFile(file, () => readFileSync(file, 'utf8'))
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

/** @throws CliError for what is neither a capability file nor the answer to a purchase. */
function savedIn(text: string, baseUrl: string): SavedCapability {
  const value = parseJson(text)
  const isAnswer = typeof value === 'object' && value !== null && 'resource' in value
  const saved = parseCapability(text) ?? fromAnswer(isAnswer ? value.resource : value, baseUrl)
  if (saved) return saved
  throw new CliError(
    'That is no capability: neither what `mayfly buy` saves, nor what a purchase returns.',
    EXIT.usage,
  )
}

function fromAnswer(capability: unknown, baseUrl: string): SavedCapability | null {
  try {
    return parseCapability(formatCapability({ capability: capability as AnyCapability, baseUrl }))
  } catch {
    // Whatever it lacks, it is no capability.
    return null
  }
}
