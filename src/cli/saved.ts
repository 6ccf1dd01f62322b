/** The user's capabilities by name, one file each in the data folder. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { formatPing, parsePing, type SavedPing } from '../client/capability-file.ts'
import {
  type AnyCapability,
  type CatchCapability,
  formatCapability,
  type PulseCapability,
  parseCapability,
  type SavedCapability,
} from '../client/index.ts'
import type { Cli } from './cli.ts'
import { namesIn, overwrite, readIfThere, writeNew } from './data-folder.ts'
import { CliError, EXIT } from './exit.ts'
import { nearestOf } from './nearest.ts'
import { listenerFile } from './position.ts'
import { openPurchase } from './vault/purchases.ts'

export type Product = AnyCapability['product']

/** Lower case, since some file systems ignore case. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/

/** @throws CliError for an invalid name. */
export function checkName(name: string): string {
  if (isName(name)) return name
  throw new CliError(
    'A name has at most 63 characters: lower-case letters, digits, dots, dashes and underscores.',
    EXIT.usage,
  )
}

export const isName = (text: string): boolean => NAME.test(text)

/** The file of the capability with this name. */
export const fileOf = ({ folder }: Pick<Cli, 'folder'>, name: string): string =>
  join(folder, 'capabilities', `${name}.json`)

/** What a file may hold: a whole capability, or a monitor's without its owner's token. */
export type Kept = SavedCapability | SavedPing

export const isPingOnly = (kept: Kept): kept is SavedPing =>
  kept.capability.product === 'pulse' && !('ownerToken' in kept.capability)

/** Parses a file of the data folder. Null for any other text. */
export const parseKept = (text: string): Kept | null => parseCapability(text) ?? parsePing(text)

/** Saves a new capability. Never overwrites one. @throws CliError if the name is taken. */
export function save(cli: Pick<Cli, 'folder'>, name: string, saved: Kept): void {
  if (writeNew(fileOf(cli, checkName(name)), textOf(saved))) return
  throw new CliError(`A capability named ${name} already exists. Choose another --name.`)
}

/** Saves what a capability has become. */
export const saveAgain = (cli: Pick<Cli, 'folder'>, name: string, saved: Kept): void =>
  overwrite(fileOf(cli, name), textOf(saved))

/** The text of a file. @throws CliError if the service's answer is not a capability. */
export function textOf(saved: Kept): string {
  try {
    if (isPingOnly(saved)) return formatPing(saved)
    return formatCapability(saved)
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error
    throw new CliError('The service answered with a capability that this version does not know.')
  }
}

/** The names of all saved capabilities. */
export const savedNames = ({ folder }: Pick<Cli, 'folder'>): string[] =>
  namesIn(join(folder, 'capabilities'), '.json').filter(isName)

/** What is saved under this name, or null. @throws CliError if its file is unreadable. */
export function findKept(cli: Pick<Cli, 'folder'>, name: string): Kept | null {
  const file = fileOf(cli, checkName(name))
  const text = readIfThere(file)
  if (text === null) return null
  const kept = parseKept(text)
  if (kept) return kept
  throw new CliError(
    `${file} is not a capability. Move it to another place or restore it, and try again.`,
  )
}

/** The capability with this name, or null. @throws CliError if it is unreadable, or for pings only. */
export function findSaved(cli: Pick<Cli, 'folder'>, name: string): SavedCapability | null {
  const kept = findKept(cli, name)
  if (kept === null || !isPingOnly(kept)) return kept
  throw new CliError(
    `${name} is saved here for pings only. Run this where its owner's token is.`,
    EXIT.usage,
  )
}

/** What is saved under this name. @throws CliError if it does not exist. */
export function loadKept(cli: Pick<Cli, 'folder'>, name: string): Kept {
  return findKept(cli, name) ?? missing(cli, name)
}

/** The capability with this name. @throws CliError if it does not exist, or is for pings only. */
export function load(cli: Pick<Cli, 'folder'>, name: string): SavedCapability {
  return findSaved(cli, name) ?? missing(cli, name)
}

function missing(cli: Pick<Cli, 'folder'>, name: string): never {
  const bought = openPurchase(cli, name)?.product ?? null
  if (bought !== null) {
    throw new CliError(
      `The purchase of ${name} is not finished. To continue: mayfly buy ${bought} --resume ${name}`,
      EXIT.gone,
    )
  }
  const meant = nearestOf(name, savedNames(cli))
  const hint = meant === null ? '' : ` Did you mean ${meant}?`
  throw new CliError(
    `Nothing is saved as ${name}.${hint} \`mayfly list\` shows what is.`,
    EXIT.gone,
  )
}

/** The inbox with this name, and its service. */
export function loadCatch(
  cli: Cli,
  name: string,
): SavedCapability & { capability: CatchCapability } {
  const { capability, ...rest } = load(cli, name)
  if (capability.product !== 'catch') throw wrongProduct(name, capability.product, 'catch')
  return { ...rest, capability }
}

/** The monitor with this name, and its service. */
export function loadPulse(
  cli: Pick<Cli, 'folder'>,
  name: string,
): SavedCapability & { capability: PulseCapability } {
  const { capability, ...rest } = load(cli, name)
  if (capability.product !== 'pulse') throw wrongProduct(name, capability.product, 'pulse')
  return { ...rest, capability }
}

/** What pings the monitor with this name, and its service. Its owner's token may be elsewhere. */
export function loadPing(cli: Pick<Cli, 'folder'>, name: string): SavedPing {
  const { capability, ...rest } = loadKept(cli, name)
  if (capability.product !== 'pulse') throw wrongProduct(name, capability.product, 'pulse')
  return { ...rest, capability }
}

/** The whisper with this name, if it was bought with a receipt, and its service. */
export function loadReceipt(
  cli: Pick<Cli, 'folder'>,
  name: string,
): { publicId: string; receiptToken: string; baseUrl: string } {
  const { capability, baseUrl } = load(cli, name)
  if (capability.product !== 'whisper') throw wrongProduct(name, capability.product, 'whisper')
  const { publicId, receiptToken } = capability
  if (receiptToken !== undefined) return { publicId, receiptToken, baseUrl }
  throw new CliError(
    `${name} was bought without a receipt. Buy the next one with: mayfly whisper send --receipt`,
    EXIT.usage,
  )
}

/**
 * Deletes the file with this name, even a damaged one, and what a listener kept beside it. False if it does not
 * exist. The listener's lock stays, since a process may hold it.
 */
export function forget(cli: Cli, name: string): boolean {
  const file = fileOf(cli, checkName(name))
  if (readIfThere(file) === null) return false
  rmSync(file)
  for (const end of ['position', 'failed']) rmSync(listenerFile(cli, name, end), { force: true })
  return true
}

/** The secret members of a capability. */
const SECRETS = new Set([
  'ownerToken',
  'ingestToken',
  'readToken',
  'receiptToken',
  'pingToken',
  'code',
])

/** The capability without its secrets. */
export function publicPart(capability: Kept['capability']): Record<string, string> {
  return Object.fromEntries(Object.entries(capability).filter(([field]) => !SECRETS.has(field)))
}

const WHAT: Record<Product, string> = {
  catch: 'an inbox (catch)',
  pulse: 'a monitor (pulse)',
  whisper: 'a whisper',
}

function wrongProduct(name: string, product: Product, wanted: Product): CliError {
  return new CliError(
    `${name} is ${WHAT[product]}, and this command takes ${WHAT[wanted]}.`,
    EXIT.usage,
  )
}
