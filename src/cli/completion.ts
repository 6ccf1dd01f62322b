/**
 * `mayfly completion bash|zsh|fish`: the completion script of a shell, from a library. At each Tab it runs
 * `mayfly complete -- <words>`, which answers what can stand there, names that are saved here included.
 */
import { script } from '@bomb.sh/tab'
import type { Command, Option } from 'commander'
import { PRODUCT_NAMES } from '../lib/product-names.ts'
import { dataFolder } from './data-folder.ts'
import { type Add, declare } from './declare.ts'
import { allKept } from './vault/saved.ts'

const SHELLS = ['bash', 'zsh', 'fish']

/** What the scripts read in the last line: whether the shell offers files besides. */
const FILES = 0
const NO_FILES = 4

const addCompletion: Add = (program) =>
  declare(
    program,
    {
      command: 'completion',
      says: 'print the completion script of a shell',
      takes: { '<shell>': ['bash (with its package bash-completion), zsh or fish', SHELLS] },
      examples: [
        'mayfly completion bash > ~/.local/share/bash-completion/completions/mayfly',
        'mayfly completion zsh > ~/.zfunc/_mayfly        (a folder of $fpath)',
        'mayfly completion fish > ~/.config/fish/completions/mayfly.fish',
      ],
    },
    ({ shell }) => script(shell, 'mayfly', 'mayfly'),
  )

const addComplete: Add = (program) =>
  declare(
    program,
    { command: 'complete', says: '', takes: { '[words...]': '' }, isHidden: true },
    ({ words = [] }) => {
      const { offered, isFile } = completed(program, words, namesHere)
      const lines = offered.map(({ text, says }) => `${text}\t${says}\n`)
      process.stdout.write(`${lines.join('')}:${isFile ? FILES : NO_FILES}\n`)
    },
  )

export const completion = [addCompletion, addComplete]

export type Completed = { offered: { text: string; says: string }[]; isFile: boolean }

const NOTHING: Completed = { offered: [], isFile: false }
const A_FILE: Completed = { offered: [], isFile: true }

/** What can stand for the last of these words, which may be empty. @param names those that are saved, of a product. */
export function completed(
  program: Command,
  words: readonly string[],
  names: (product: string | null) => string[],
): Completed {
  const last = words.at(-1) ?? ''
  let at = program
  let given = 0
  let waiting: Option | undefined
  for (const word of words.slice(0, -1)) {
    const command = at.commands.find((one) => one.name() === word)
    if (waiting !== undefined) waiting = undefined
    // The job of `pulse run`.
    else if (word === '--') return A_FILE
    else if (word.startsWith('-')) {
      const option = optionsAt(program, at).find(({ long }) => long === word)
      if (option?.required) waiting = option
    } else if (command) at = command
    else given++
  }
  const begun = (all: readonly (readonly [text: string, says: string])[]): Completed => ({
    offered: all
      .map(([text, says]) => ({ text, says }))
      .filter(({ text }) => text.startsWith(last)),
    isFile: false,
  })
  const namesOf = (product: string | null) =>
    begun(names(product).map((name) => [name, product ?? '']))
  if (waiting === undefined && last.startsWith('-')) {
    return begun(optionsAt(program, at).map(({ long, description }) => [long ?? '', description]))
  }
  if (waiting === undefined && at.commands.length > 0) {
    const shown = at.createHelp().visibleCommands(at)
    return begun(shown.map((one) => [one.name(), one.description()]))
  }
  const slot = waiting ?? at.registeredArguments[given]
  if (slot?.argChoices) return begun(slot.argChoices.map((choice) => [choice, '']))
  if (waiting !== undefined) {
    const product = NAMES_IN_OPTIONS[waiting.long ?? '']
    if (product !== undefined) return namesOf(product)
    return /<(?:file|folder)>/.test(waiting.flags) ? A_FILE : NOTHING
  }
  const kind = slot?.name() ?? ''
  if (!/^name(?:-or-id)?$/.test(kind)) return kind === 'file' ? A_FILE : NOTHING
  return namesOf(PRODUCT_NAMES.find((name) => name === at.parent?.name()) ?? null)
}

/** The options whose value is what is saved here, and of which product. */
const NAMES_IN_OPTIONS: Record<string, string | null> = {
  '--inbox': 'catch',
  '--when-late': 'pulse',
}

const optionsAt = (program: Command, at: Command): readonly Option[] => [
  ...(at === program ? [] : at.options),
  ...program.options,
]

/** Names of this user. What is damaged is offered too, since it can be forgotten. */
function namesHere(product: string | null): string[] {
  try {
    return allKept({ folder: dataFolder() })
      .filter(({ kept }) => product === null || kept?.capability.product === product)
      .map(({ name }) => name)
  } catch {
    // A shell that waits at a Tab has no use for the reason.
    return []
  }
}
