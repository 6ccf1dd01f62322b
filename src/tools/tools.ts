/** All tools, as a host is offered them by the library of the protocol, and one call of one of them. */
import {
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { TSchema } from 'typebox'
import { faultIn, validatorOf } from '../http/validation.ts'
import { isObject } from '../lib/json.ts'
import { Refusal } from './answers.ts'
import { BUY_INBOX, BUY_MONITOR, CATALOG, CHECK_ORDER, EXTEND, SEND_WHISPER } from './buying.ts'
import { GET_WEBHOOK, READ_INBOX, SET_WEBHOOK_RESPONSE, WAIT_FOR_WEBHOOK } from './inbox.ts'
import { CONFIGURE_MONITOR, MONITOR_STATUS, PING } from './monitor.ts'
import { DESTROY, ROTATE_TOKEN } from './owning.ts'
import { escapeSteering } from './strangers.ts'
import { about, type Context, objectOf, type Tool, type Way } from './tool.ts'
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

/** The tools as a host on this way in sees them, in one order for all. */
const definitionsFor = (way: Way) =>
  TOOLS.map(({ name, title, description, hints, about: roles, input, output, needs = [] }) => ({
    name,
    title,
    description: description(way),
    // Only what differs from the defaults of the protocol: a host pays for each word. JSON leaves out what is undefined.
    annotations: {
      readOnlyHint: hints.reads,
      destructiveHint: hints.destroys ? undefined : false,
      idempotentHint: hints.repeatable,
      openWorldHint: hints.open ? undefined : false,
    },
    inputSchema: roles
      ? objectOf({ ...about(way, roles), ...input(way) }, ['name', 'publicId', ...needs])
      : objectOf(input(way), needs),
    outputSchema: output,
  }))

export type Result = {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  _meta?: Record<string, unknown>
  isError?: boolean
}

/** A call whose arguments fit its tool. */
export type ToolCall = {
  way: Way
  name: string
  args: Record<string, unknown>
  meta: Record<string, unknown>
  ctx: ServerContext
  /** Tells the host that the call is under way, if it wants to know. */
  progress(message: string): Promise<void>
  /** Runs the tool. @throws what is no Refusal. */
  run(parts: Pick<Context, 'api' | 'pay' | 'secrets'>): Promise<Result>
}

/** The tools of a way in, for any number of servers. */
export function createTools(way: Way, monotonic: () => number) {
  const definitions = definitionsFor(way)
  // As plain JSON, which the library's types want.
  const tools = JSON.parse(JSON.stringify(definitions)) as never

  return function offerTools(
    server: Server,
    answer: (call: ToolCall) => Promise<Result | InputRequiredResult>,
  ): void {
    server.setRequestHandler('tools/list', () => ({ tools }))
    server.setRequestHandler('tools/call', ({ params }, ctx) => {
      const { name, arguments: args = {} } = params
      const at = TOOL_NAMES.indexOf(name)
      const [tool, definition] = [TOOLS[at], definitions[at]]
      if (!tool || !definition) {
        const known = `unknown tool. There are ${TOOL_NAMES.join(', ')}.`
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, known)
      }
      const fault = faultOf(definition.inputSchema, args)
      if (fault !== null) return errorResult(`invalid arguments. ${fault}. Nothing was done.`)
      // The library keeps members of _meta that it does not know.
      const meta = { ...params._meta, ...ctx.mcpReq._meta }
      const progress = progressOf(ctx, meta.progressToken)
      const run: ToolCall['run'] = (parts) =>
        runTool(tool, { ...parts, way, args, monotonic, progress })
      return answer({ way, name, args, meta, ctx, progress, run })
    })
  }
}

/** Says what arguments must be instead, or null if they fit. */
function faultOf(schema: TSchema, args: object): string | null {
  if (validatorOf(schema).Check(args)) return null
  const { field, expected } = faultIn(schema, args)
  if (field === undefined) return `Expected: ${expected}`
  const { required = [] } = schema as { required?: string[] }
  const isMissing = required.includes(field) && !Object.hasOwn(args, field)
  return `${field} ${isMissing ? 'is needed, and must be' : 'must be'} ${expected}`
}

function progressOf({ mcpReq }: ServerContext, progressToken: string | number | undefined) {
  let progress = 0
  return async (message: string): Promise<void> => {
    if (progressToken === undefined) return
    progress++
    const params = { progressToken, progress, message }
    // A host that is gone ends the call by its signal.
    await mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
  }
}

async function runTool(tool: Tool, context: Context): Promise<Result> {
  try {
    const done = tool.about
      ? await tool.run({ ...context, held: await context.secrets.find(tool.about) })
      : await tool.run(context)
    // The service is a stranger too: nothing that it says steers, whichever member has it.
    const { value, text = value ? inLines(value) : '', meta } = done
    return {
      content: [{ type: 'text', text: escapeSteering(text) }],
      ...(value ? { structuredContent: escaped(value) as Record<string, unknown> } : {}),
      ...(meta ? { _meta: { ...meta } } : {}),
    }
  } catch (error) {
    if (error instanceof Refusal) return errorResult(escapeSteering(error.message))
    throw error
  }
}

export const errorResult = (text: string): Result => ({
  content: [{ type: 'text', text }],
  isError: true,
})

/**
 * A value as text, for hosts that read no structured content: a line for each member, and for each of a list. Only
 * `next`, which is ours, has several: a service that lies could else begin a line.
 */
const inLines = (value: object): string =>
  Object.entries(value)
    .flatMap(([name, member]) => {
      if (name === 'next') return `next: ${member}`
      if (isObject(member)) return Object.entries(member).map(inLine)
      if (!Array.isArray(member)) return inLine([name, member])
      const items = member.map((item) => `- ${Object.entries(item).map(inLine).join(', ')}`)
      return [`${name}:`, ...items]
    })
    .join('\n')

const inLine = ([name, member]: [string, unknown]): string =>
  `${name}: ${String(member ?? 'none').replaceAll('\n', '\\u{a}')}`

function escaped(value: unknown): unknown {
  if (typeof value === 'string') return escapeSteering(value)
  if (Array.isArray(value)) return value.map(escaped)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, escaped(each)]))
}
