/** One call at `/mcp`, and its connection. */
import type { Way } from '../tool.ts'
import type { ToolCall } from '../tools.ts'
import type { AskOwn, Caller, OwnRequest } from './own-requests.ts'

/** What the caller's connection says about all of its calls. */
export type Connection = Caller & {
  way: Exclude<Way, 'local'>
  /** The Authorization header, for a client of one capability. */
  authorization: string | undefined
  /**
   * Counts this many bytes besides the message, until the client has taken the answer. Another number replaces it.
   * False, and nothing has changed, if the budget has no room for them.
   */
  hold(bytes: number): boolean
}

/** A call of a tool, with what asks the service for its caller. */
export type Call = ToolCall & {
  connection: Connection
  ask(asked: OwnRequest): ReturnType<AskOwn>
}
