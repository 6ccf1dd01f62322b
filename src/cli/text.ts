/** Text on a terminal: sizes, times, and escaped text from strangers. */
import { replaceInvisible } from '../lib/invisible.ts'

/** Escapes every invisible character in a stranger's text. With `lines`, line feeds and tabs stay. */
export function harmless(text: string, { lines = false } = {}): string {
  return replaceInvisible(
    text,
    (code) =>
      code < 0x100
        ? `\\x${code.toString(16).padStart(2, '0')}`
        : `\\u${code.toString(16).padStart(4, '0')}`,
    { keep: lines ? '\n\t' : '' },
  )
}

/** A size such as `340 B` or `1.2 kB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** The distance of a time from now, such as `in 3 h`, `now` or `2 d ago`. */
export function away(time: string, now: number): string {
  const seconds = Math.round((Date.parse(time) - now) / 1000)
  if (seconds === 0) return 'now'
  return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`
}

/** A duration in one unit, such as `3 h`. */
export function span(seconds: number): string {
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/** A text, unchanged for a file or program, and escaped for a terminal. */
export const shownOn = ({ isTTY }: { isTTY?: boolean }, text: string): string =>
  isTTY ? harmless(text, { lines: true }) : text

/** Rows with aligned columns, one line each. Escapes their texts. */
export function columns(texts: readonly (readonly string[])[]): string {
  const rows = texts.map((row) => row.map((cell) => harmless(cell)))
  const widths: number[] = []
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length)
  }
  return rows
    .map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** The end of a command's help: examples, one per line, and what else is to be known. */
export const helpText = (examples: readonly string[], notes = ''): string =>
  ['\nExamples:', ...examples.map((line) => `  ${line}`), notes.trimEnd()].join('\n').trimEnd()
