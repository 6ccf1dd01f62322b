/** Offers the tools to a host, by the library of the protocol. */
import {
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { type createTools, errorResult, NO_TOOL, type Result, TOOL_NAMES } from './tools.ts'

/** A call whose arguments fit its tool. */
export type CheckedCall = {
  name: string
  args: Record<string, unknown>
  meta: Record<string, unknown>
  ctx: ServerContext
  /** Tells the host that the call is under way, if it wants to know. */
  progress(message: string): Promise<void>
}

export function offerTools(
  server: Server,
  tools: ReturnType<typeof createTools>,
  run: (call: CheckedCall) => Promise<Result | InputRequiredResult>,
): void {
  server.setRequestHandler('tools/list', () => ({ tools: tools.definitions }))
  server.setRequestHandler('tools/call', ({ params }, ctx) => {
    const { name, arguments: args = {} } = params
    if (!TOOL_NAMES.includes(name)) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, NO_TOOL)
    }
    const fault = tools.faultIn(name, args)
    if (fault !== null) return errorResult(fault)
    const { mcpReq } = ctx
    // The library keeps members of _meta that it does not know.
    const meta = { ...params._meta, ...mcpReq._meta }
    const { progressToken } = meta
    let progress = 0
    return run({
      name,
      args,
      meta,
      ctx,
      async progress(message) {
        if (progressToken === undefined) return
        progress++
        const told = { progressToken, progress, message }
        // A host that is gone ends the call by its signal.
        await mcpReq
          .notify({ method: 'notifications/progress', params: told })
          .catch(() => undefined)
      },
    })
  })
}
