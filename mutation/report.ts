/** Reads what Stryker found: the score, and the survivors that mutation/equivalent.json does not explain. */
import { readFileSync } from 'node:fs'
import { changeOf } from './sql.ts'

type Position = { line: number; column: number }
type Mutant = {
  status: string
  mutatorName: string
  replacement?: string
  location: { start: Position; end: Position }
}
export type Report = { files: Record<string, { source: string; mutants: Mutant[] }> }
/** A survivor, known by its function and its text, because lines move. */
type Known = { in: string; from: string; to: string; why: string }
type Survivor = Omit<Known, 'why'> & { file: string; line: number; status: string }

const MAX_TEXT = 160

/** The survivors of a report, and whether all of them are explained. */
export function judge(
  room: string,
  path: string,
  /** Those that were asked for, if not the whole room. */
  only?: string[],
): { lines: string[]; isGood: boolean } {
  const list = readFileSync(new URL('equivalent.json', import.meta.url), 'utf8')
  return verdict(room, readReport(path, only), JSON.parse(list) as Record<string, Known[]>)
}

export function verdict(
  room: string,
  { files }: Report,
  known: Record<string, Known[]>,
): { lines: string[]; isGood: boolean } {
  const survivors = survivorsOf({ files })
  const isKnown = (one: Survivor) => (known[one.file] ?? []).some((entry) => isSame(entry, one))
  const unknown = survivors.filter((one) => !isKnown(one))
  const stale = Object.keys(files).flatMap((file) =>
    (known[file] ?? [])
      .filter((entry) => !survivors.some((one) => one.file === file && isSame(entry, one)))
      .map((entry) => `${file} ${entry.in}: ${entry.from} → ${entry.to}`),
  )
  return {
    lines: [
      ...unknown.map(
        ({ file, line, status, ...one }) =>
          `${file}:${line} ${status === 'NoCoverage' ? 'no test reaches it' : 'survived'}: ${JSON.stringify(one)}`,
      ),
      ...stale.map((one) => `no longer survives, remove it from equivalent.json: ${one}`),
      ...Object.entries(files).map(([file, one]) =>
        score(file, [one], survivors.filter((it) => it.file === file && isKnown(it)).length),
      ),
      score(room, Object.values(files), survivors.length - unknown.length),
    ],
    isGood: unknown.length === 0 && stale.length === 0,
  }
}

export function survivorsOf({ files }: Report): Survivor[] {
  return Object.entries(files).flatMap(([file, { source, mutants }]) =>
    mutants.filter(hasSurvived).map((mutant) => describe(file, source, mutant)),
  )
}

export function readReport(path: string, only?: string[]): Report {
  const { files } = JSON.parse(readFileSync(path, 'utf8')) as Report
  const isWanted = ([file]: [string, unknown]) => only === undefined || only.includes(file)
  return { files: Object.fromEntries(Object.entries(files).filter(isWanted)) }
}

function score(name: string, files: { mutants: Mutant[] }[], explained: number): string {
  const all = files.flatMap(({ mutants }) => mutants)
  const count = (...statuses: string[]) =>
    all.filter(({ status }) => statuses.includes(status)).length
  const killed = count('Killed', 'Timeout')
  const tried = killed + count('Survived', 'NoCoverage')
  const percent = (whole: number) => `${((100 * killed) / Math.max(whole, 1)).toFixed(1)} %`
  const unable = count('RuntimeError', 'CompileError')
  return [
    `${name}: ${killed} of ${tried} mutants found, ${percent(tried)}`,
    `${percent(tried - explained)} without the ${explained} that are explained`,
    `${count('Timeout')} never ended`,
    ...(count('Ignored') > 0 ? [`${count('Ignored')} left out`] : []),
    ...(unable > 0 ? [`${unable} could not run`] : []),
  ].join('; ')
}

function hasSurvived({ status }: Mutant): boolean {
  return status === 'Survived' || status === 'NoCoverage'
}

function isSame(entry: Omit<Known, 'why'>, one: Survivor): boolean {
  return entry.in === one.in && entry.from === one.from && entry.to === one.to
}

function describe(file: string, source: string, mutant: Mutant): Survivor {
  const lines = source.split('\n')
  const { start, end } = mutant.location
  const text = lines
    .slice(start.line - 1, end.line)
    .map((line, i, part) =>
      line.slice(
        i === 0 ? start.column - 1 : 0,
        i === part.length - 1 ? end.column - 1 : undefined,
      ),
    )
    .join('\n')
  return {
    file,
    line: start.line,
    status: mutant.status,
    in: functionAt(lines, start.line - 1),
    ...inShort(mutant, text),
  }
}

/** The function, or the constant, in which a line stands: the nearest above that is indented less. */
function functionAt(lines: string[], at: number): string {
  const indentOf = (line: string) => line.length - line.trimStart().length
  let indent = Number.POSITIVE_INFINITY
  for (let i = at; i >= 0; i--) {
    const line = lines[i] ?? ''
    if (line.trim() === '' || (i < at && indentOf(line) >= indent)) continue
    // The end of a list of parameters, whose function stands further above.
    if (i < at && /^\s*[)}\]]/.test(line)) continue
    const named = line.match(/^\s*(?:export )?(?:async )?(?:function\*?|const|type) (\w+)/)
    const isHead = /^\s*(export )?(async )?function\b/.test(line) || indentOf(line) === 0
    if (named?.[1] !== undefined && isHead) return named[1]
    indent = indentOf(line)
  }
  return ''
}

/** Of a long statement, only what changed. */
function inShort({ mutatorName, replacement = '' }: Mutant, text: string) {
  if (mutatorName !== 'Sql') return { from: short(text), to: short(replacement) }
  // Without the quotes, which may differ.
  const { from, to } = changeOf(flat(text.slice(1, -1)), flat(replacement.slice(1, -1)))
  return { from, to }
}

function short(text: string): string {
  const line = flat(text)
  return line.length > MAX_TEXT ? `${line.slice(0, MAX_TEXT)}…` : line
}

const flat = (text: string): string => text.replace(/\s+/g, ' ').trim()
