/** The results of tools, and their errors, as sentences that say where the money is. */
import {
  type CallToolResult,
  type InputRequiredResult,
  isInputRequiredResult,
} from '@modelcontextprotocol/server'
import { hideTokens } from '../../lib/ids.ts'
import { escapeSteering, resultText } from '../../mcp-tools/stranger.ts'
import type { Cli } from '../cli.ts'
import { endingOf } from '../exit.ts'

/** An error may quote what a service said. */
const MAX_ERROR_CHARS = 1_000

/** Runs a tool's work. A failure is a result too, which the model reads. */
export async function answered(
  cli: Cli,
  work: () => Promise<object>,
): Promise<CallToolResult | InputRequiredResult> {
  try {
    const value = await work()
    if (isInputRequiredResult(value)) return value
    // The service is a stranger too: nothing that it says steers, whichever member has it.
    const shown = escaped(value) as Record<string, unknown>
    return { content: [{ type: 'text', text: resultText(shown) }], structuredContent: shown }
  } catch (error) {
    return { isError: true, content: [{ type: 'text', text: sentenceOf(cli, error) }] }
  }
}

function escaped(value: unknown): unknown {
  if (typeof value === 'string') return escapeSteering(value)
  if (Array.isArray(value)) return value.map(escaped)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, escaped(each)]))
}

function sentenceOf(cli: Cli, error: unknown): string {
  if (error instanceof Error && error.name === 'AbortError') return 'The call was cancelled.'
  const ending = endingOf(error, cli.url)
  if (ending === null) {
    cli.warn(hideTokens(error instanceof Error ? (error.stack ?? error.message) : String(error)))
    return 'This is a fault of mayfly mcp, and its stderr has more. If this was a purchase, call it again with the same name: nothing is paid twice.'
  }
  return escapeSteering(hideTokens(ending.sentence)).slice(0, MAX_ERROR_CHARS)
}
