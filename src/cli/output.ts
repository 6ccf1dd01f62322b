/** The output of a command: JSON for programs, text for people, and notes on stderr. */
import { styleText } from 'node:util'
import { replaceInvisible } from '../lib/invisible.ts'
import { jsonEscape } from '../lib/json.ts'
import type { GlobalOptions } from './declare.ts'
import { type Ending, EXIT, endingOf } from './exit.ts'
import { harmless, shownOn } from './text.ts'
import { chainOf, placeOf } from './trace.ts'

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

export type Output = ReturnType<typeof openOutput>

/** Whether the answer is JSON: with `--json`, and if stdout is not a terminal. */
export const isForPrograms = ({ json }: GlobalOptions): boolean => json ?? !process.stdout.isTTY

export function openOutput({ quiet }: GlobalOptions, isJson: boolean) {
  return {
    /** Whether the answer is JSON. */
    isJson,
    /** Prints the answer, or one line of it: JSON for programs, text for people. Neither steers a terminal. */
    answer(json: unknown, text: string): void {
      process.stdout.write(isJson ? jsonLine(json) : textOf(text))
    },
    /** Prints a sentence on stderr about what goes on, unless only answers and errors are wanted. */
    note: quiet ? (_sentence: string): void => undefined : print,
    /** Prints a sentence on stderr about what has failed, is lost, or stays somewhere. */
    warn: print,
    /** Styles a text, if stdout is a terminal that supports that, and without NO_COLOR. */
    paint: (style: Style, text: string): string =>
      styleText(style, text, { stream: process.stdout }),
  }
}

/** Runs a command's work and sets its exit code. Turns errors that the user can fix into a sentence. */
export async function finish(
  { json, debug }: GlobalOptions,
  work: () => Promise<unknown>,
  explain: (error: unknown) => Ending | null = (error) => endingOf(error, ''),
): Promise<number> {
  try {
    const code = await work()
    return typeof code === 'number' ? code : EXIT.ok
  } catch (error) {
    const ending = explain(error)
    if (debug) for (const line of [`failed: ${chainOf(error)}`, ...placeOf(error)]) printDebug(line)
    if (ending === null) throw error
    if (ending.sentence !== '') print(ending.sentence)
    if (json && ending.sentence !== '') process.stdout.write(jsonLine({ error: ending.sentence }))
    return ending.code
  }
}

function print(sentence: string): void {
  process.stderr.write(`${harmless(sentence, { lines: true })}\n`)
}

/** A line of `--debug`. */
export const printDebug = (line: string): void => print(`debug: ${line}`)

/** What `paint` makes for a terminal, and nothing else that steers one. */
const ESCAPE = '\u001b'
const STYLES = new RegExp(`(${ESCAPE}\\[(?:1|2|22|31|32|33|39)m)`)

/** Escapes what could steer a terminal, except for our own styles: a service may have written any of it. */
const textOf = (text: string): string =>
  text
    .split(STYLES)
    .map((part, at) => (at % 2 === 1 ? part : shownOn(process.stdout, part)))
    .join('')

/** Escapes every character that could control a terminal. */
function jsonLine(value: unknown): string {
  const json = JSON.stringify(value)
  return `${process.stdout.isTTY ? replaceInvisible(json, jsonEscape) : json}\n`
}
