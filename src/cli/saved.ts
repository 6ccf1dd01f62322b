/** The user's capabilities by name, one file each in the data folder. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import {
  type AnyCapability,
  type CatchCapability,
  formatCapability,
  type PulseCapability,
  parseCapability,
  type SavedCapability,
} from '../client/index.ts'
import type { Cli } from './cli.ts'
import { namesIn, readIfThere, writeNew } from './data-folder.ts'
import { CliError, EXIT } from './exit.ts'

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

/** Saves a new capability. Never overwrites one. @throws CliError if the name is taken. */
export function save(cli: Cli, name: string, saved: SavedCapability): void {
  if (writeNew(fileOf(cli, checkName(name)), textOf(saved))) return
  throw new CliError(`A capability named ${name} already exists. Choose another --name.`)
}

/** @throws CliError if the service's answer is not a capability. */
function textOf(saved: SavedCapability): string {
  try {
    return formatCapability(saved)
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error
    throw new CliError('The service answered with a capability that this version does not know.')
  }
}

/** The names of all saved capabilities. */
export const savedNames = ({ folder }: Cli): string[] =>
  namesIn(join(folder, 'capabilities'), '.json').filter(isName)

/** The capability with this name, or null. @throws CliError if its file is unreadable. */
export function findSaved(cli: Pick<Cli, 'folder'>, name: string): SavedCapability | null {
  const file = fileOf(cli, checkName(name))
  const text = readIfThere(file)
  if (text === null) return null
  const saved = parseCapability(text)
  if (saved) return saved
  throw new CliError(
    `${file} is not a capability. Move it to another place or restore it, and try again.`,
  )
}

/** The capability with this name. @throws CliError if it does not exist. */
export function load(cli: Pick<Cli, 'folder'>, name: string): SavedCapability {
  const saved = findSaved(cli, name)
  if (saved) return saved
  throw new CliError(`Nothing is saved as ${name}. \`mayfly list\` shows what is.`, EXIT.gone)
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

/** Deletes the file with this name, even a damaged one. False if it does not exist. */
export function forget(cli: Cli, name: string): boolean {
  const file = fileOf(cli, checkName(name))
  if (readIfThere(file) === null) return false
  rmSync(file)
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
export function publicPart(capability: AnyCapability): Record<string, string> {
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
