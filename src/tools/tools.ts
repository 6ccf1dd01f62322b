/** All tools, as a host is offered them, and one call of one of them. */
import type { TSchema } from 'typebox'
import { faultIn, validatorOf } from '../http/validation.ts'
import { Type } from '../lib/json-schema.ts'
import { Refusal } from './answers.ts'
import { BUY_INBOX, BUY_MONITOR, CATALOG, CHECK_ORDER, EXTEND, SEND_WHISPER } from './buying.ts'
import { GET_WEBHOOK, READ_INBOX, SET_WEBHOOK_RESPONSE, WAIT_FOR_WEBHOOK } from './inbox.ts'
import { CONFIGURE_MONITOR, MONITOR_STATUS, PING } from './monitor.ts'
import { DESTROY, ROTATE_TOKEN } from './owning.ts'
import { escapeSteering } from './strangers.ts'
import { about, type Context, type Tool, type Way } from './tool.ts'
import { READ_WHISPER } from './whisper.ts'

const TOOLS: readonly Tool[] = [
  CATALOG,
  BUY_INBOX,
  WAIT_FOR_WEBHOOK,
  READ_INBOX,
  GET_WEBHOOK,
  SET_WEBHOOK_RESPONSE,
  BUY_MONITOR,
  CONFIGURE_MONITOR,
  MONITOR_STATUS,
  PING,
  SEND_WHISPER,
  READ_WHISPER,
  CHECK_ORDER,
  EXTEND,
  ROTATE_TOKEN,
  DESTROY,
]

export const TOOL_NAMES: readonly string[] = TOOLS.map(({ name }) => name)

export const NO_TOOL = `unknown tool. There are ${TOOL_NAMES.join(', ')}.`

export type Definition = {
  name: string
  title: string
  description: string
  annotations: Record<string, boolean>
  inputSchema: TSchema
  outputSchema?: TSchema
}

/** The tools as a host on this way in sees them, in one order for all. */
const definitionsFor = (way: Way): readonly Definition[] =>
  TOOLS.map(({ name, title, description, hints, about: roles, input, output }) => ({
    name,
    title,
    description: description(way),
    // Only what differs from the defaults of the protocol: a host pays for each word.
    annotations: {
      ...(hints.reads ? { readOnlyHint: true } : {}),
      ...(hints.destroys ? {} : { destructiveHint: false }),
      ...(hints.repeatable ? { idempotentHint: true } : {}),
      ...(hints.open ? {} : { openWorldHint: false }),
    },
    inputSchema: Type.Object(
      { ...(roles ? about(way, roles) : {}), ...input(way) },
      { additionalProperties: false },
    ),
    ...(output ? { outputSchema: output } : {}),
  }))

export type Result = {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  _meta?: Record<string, unknown>
  isError?: boolean
}

/** The tools of a way in. */
export function createTools(way: Way) {
  const definitions = definitionsFor(way)
  const checks = new Map(
    definitions.map(({ name, inputSchema }) => [name, checkOf(inputSchema)] as const),
  )
  return {
    // As plain JSON, which the library's types want.
    definitions: JSON.parse(JSON.stringify(definitions)) as never,
    /** What is wrong with the arguments of a call, or null. */
    faultIn(name: string, args: unknown): string | null {
      const fault = checks.get(name)?.(args) ?? null
      return fault === null ? null : `invalid arguments. ${fault}. Nothing was done.`
    },
    /** Runs a tool. @throws what is no Refusal. */
    async run(name: string, context: Context): Promise<Result> {
      const tool = TOOLS.find((one) => one.name === name)
      if (!tool) throw new Error('the call was not checked')
      try {
        const { text, value, meta } = tool.about
          ? await tool.run({ ...context, held: await context.secrets.find(tool.about) })
          : await tool.run(context)
        return {
          // The service is a stranger too: nothing that it says steers, whichever member has it.
          content: [{ type: 'text', text: escapeSteering(text) }],
          ...(value ? { structuredContent: escaped(value) as Record<string, unknown> } : {}),
          ...(meta ? { _meta: { ...meta } } : {}),
        }
      } catch (error) {
        if (error instanceof Refusal) return errorResult(escapeSteering(error.message))
        throw error
      }
    },
  }
}

export const errorResult = (text: string): Result => ({
  content: [{ type: 'text', text }],
  isError: true,
})

function escaped(value: unknown): unknown {
  if (typeof value === 'string') return escapeSteering(value)
  if (Array.isArray(value)) return value.map(escaped)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, escaped(each)]))
}

/** Says what arguments must be instead, or null if they fit. Compiled by its first use. */
function checkOf(schema: TSchema): (given: unknown) => string | null {
  return (given) => {
    if (validatorOf(schema).Check(given)) return null
    const { field, expected } = faultIn(schema, given)
    return field === undefined ? `Expected: ${expected}` : `${field} must be ${expected}`
  }
}
