/** The output of a command: JSON for programs, text for people, and notes on stderr. */
import { styleText } from 'node:util'
import { type Ending, EXIT, endingOf } from './exit.ts'
import { harmless, STEERING } from './text.ts'

/** The options that every command takes. */
export type GlobalOptions = { url?: string; json?: true; color: boolean; maxSats?: string }

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

export type Output = {
  /** Whether the answer is JSON. */
  isJson: boolean
  /** Prints the answer, or one line of it: JSON for programs, text for people. */
  answer(json: unknown, text: string): void
  /** Prints a sentence on stderr. */
  note(sentence: string): void
  /** Styles a text, if its terminal supports that. */
  paint(style: Style, text: string, stream?: NodeJS.WriteStream): string
}

/** Whether the answer is JSON: with `--json`, and if stdout is not a terminal. */
export const isForPrograms = ({ json }: GlobalOptions): boolean => json ?? !process.stdout.isTTY

export function openOutput({ color }: GlobalOptions, isJson: boolean): Output {
  return {
    isJson,
    answer(json, text) {
      process.stdout.write(isJson ? jsonLine(json) : text)
    },
    note,
    paint(style, text, stream = process.stdout) {
      return color ? styleText(style, text, { stream }) : text
    },
  }
}

/** Runs a command's work and sets its exit code. Turns errors that the user can fix into a sentence. */
export async function finish(
  { json }: GlobalOptions,
  work: () => Promise<number | undefined>,
  explain: (error: unknown) => Ending | null = (error) => endingOf(error, ''),
): Promise<number> {
  try {
    return (await work()) ?? EXIT.ok
  } catch (error) {
    const ending = explain(error)
    if (ending === null) throw error
    if (ending.sentence !== '') note(ending.sentence)
    if (json && ending.sentence !== '') process.stdout.write(jsonLine({ error: ending.sentence }))
    return ending.code
  }
}

function note(sentence: string): void {
  process.stderr.write(`${harmless(sentence, { lines: true })}\n`)
}

const jsonLine = (value: unknown): string => `${escapedForTerminal(JSON.stringify(value))}\n`

/** Escapes every character in JSON that could control a terminal. */
const escapedForTerminal = (json: string): string =>
  process.stdout.isTTY ? json.replace(STEERING, escaped) : json

const escaped = (character: string): string =>
  [...Array(character.length).keys()]
    .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`)
    .join('')
