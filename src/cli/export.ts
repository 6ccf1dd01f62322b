/** `mayfly export` and `import`: one capability for another machine, or everything as a backup. */
import { type Kept, parseKept, type SavedPing } from '../client/capability-file.ts'
import { type AnyCapability, formatCapability, parseCapability } from '../client/index.ts'
import { isObject, objectIn, parseJson } from '../lib/json.ts'
import { readInput } from './ask.ts'
import { type Cli, client } from './cli.ts'
import { writeFlushed } from './data-folder.ts'
import { misuse } from './exit.ts'
import { goesWith } from './options.ts'
import { savedAs } from './purchase.ts'
import { type Backup, isBackup, NOTHING, readBackup, restoreBackup } from './vault/backup.ts'
import { openPurchase } from './vault/purchases.ts'
import { findKept, load, loadPing, publicPart, save, textOf } from './vault/saved.ts'

const addExport = client({
  command: 'export',
  says: 'write the file of a capability for another machine, or a backup of everything',
  takes: {
    '[name]': '',
    '--all': 'a backup: capabilities, purchases under way, spendings, and unopened reads',
    '--ping-only': 'of a monitor, only what its jobs need: no owner token',
    '--as <format>': [
      'for `mayfly import`, or with --ping-only for `curl -K`',
      ['json', 'curl'],
      'json',
    ],
    '--out <file>': 'write it to this new file, which only this user can read',
  },
  examples: [
    'mayfly export --all --out mayfly-backup.json',
    'mayfly export backup --ping-only | ssh server mayfly import - --name backup',
    'mayfly export backup --ping-only --as curl --out backup.curl',
  ],
  notes: `
Everyone who has the file can use what is in it.
`,
  async run(cli, { name, all = false, pingOnly = false, as, out }) {
    goesWith('--ping-only', pingOnly, { '--as curl': as === 'curl' ? as : undefined })
    if ((name === undefined) !== all || (all && pingOnly)) {
      throw misuse('Give a name, or --all for a backup of everything.')
    }
    const ofOne = pingOnly ? pingsOf : ofOwner
    const text = name === undefined ? backupFile(readBackup(cli)) : ofOne(cli, name, as)
    if (out === undefined) return process.stdout.write(text)
    writeFlushed(out, 'wx', text)
    const about = name === undefined ? { all } : { name, pingOnly }
    return cli.answer({ ...about, file: out }, `Written to ${out}\n`)
  },
})

function pingsOf(cli: Cli, name: string, as: 'json' | 'curl'): string {
  const { capability, ...rest } = loadPing(cli, name)
  const { product, publicId, pingToken, expiresAt } = capability
  const kept = { ...rest, capability: { product, publicId, pingToken, expiresAt } }
  return as === 'curl' ? curlConfig(kept) : textOf(kept)
}

function ofOwner(cli: Cli, name: string): string {
  const record = findKept(cli, name) === null ? openPurchase(cli, name) : null
  if (record !== null) return backupFile({ ...NOTHING, purchases: [{ name, record }] })
  return textOf(load(cli, name))
}

const backupFile = (backup: Backup): string => `${JSON.stringify({ mayfly: 1, backup })}\n`

/** In a file, because every user of the machine can read the arguments of `curl`. */
function curlConfig({ capability, baseUrl }: SavedPing): string {
  const { publicId, pingToken } = capability
  return [
    `url = "${baseUrl}/p/${publicId}"`,
    'request = "POST"',
    `header = "Authorization: Bearer ${pingToken}"`,
    'fail',
    'silent',
    'show-error',
    'max-time = 10',
    'retry = 3',
    '',
  ].join('\n')
}

const addImport = client({
  command: 'import',
  says: 'save what `export` wrote, from a file, or from stdin with -',
  takes: {
    '<file>': 'a file that `export` wrote, or the `resource` that a purchase returned',
    '--name <name>': 'the name to save it under; a backup has names',
  },
  examples: ['mayfly import hooks.json --name hooks', 'mayfly import mayfly-backup.json'],
  notes: `
A backup adds what is not here, and counts what it spent today. A purchase that was under way when it was made may
have been paid since, so it counts as unknown: \`mayfly list\` shows how to go on. Only the wallet that it names may
pay it.
`,
  async run(cli, { file, name }) {
    const text = (await readInput(cli, file, 'Paste what `export` wrote')).toString('utf8')
    const { backup } = objectIn(text) ?? {}
    if (isBackup(backup)) {
      const done = restoreBackup(cli, backup)
      const { capabilities, purchases, reads } = done
      return cli.answer(
        done,
        `Added: ${capabilities} capabilities, ${purchases} purchases under way, ${reads} unopened reads.\n`,
      )
    }
    const saved = savedIn(text, cli.url)
    if (name === undefined) throw misuse('Give the name to save it under: --name.')
    save(cli, name, saved)
    return cli.answer(
      { name, baseUrl: saved.baseUrl, ...publicPart(saved.capability) },
      savedAs(cli, name),
    )
  },
})

/** @throws CliError for text that is neither a capability file nor the answer to a purchase. */
function savedIn(text: string, baseUrl: string): Kept {
  const value = parseJson(text)
  const isAnswer = isObject(value) && 'resource' in value
  const saved = parseKept(text) ?? fromAnswer(isAnswer ? value.resource : value, baseUrl)
  if (saved) return saved
  // The command before a pipe has failed, for instance.
  if (text.trim() === '') throw misuse('There is nothing in it. Import what `mayfly export` wrote.')
  throw misuse(
    'That is not a capability: neither a file that `mayfly export` wrote, nor the answer to a purchase.',
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

export const exportAndImport = [addExport, addImport]
