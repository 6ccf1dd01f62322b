/** What a host is told of a tool. Both ways in offer the same names. */
import type { TSchema } from 'typebox'

/**
 * How a host reaches the tools. `local` is `mayfly mcp`: it pays, keeps the tokens and encrypts. `remote` is the
 * endpoint of the service: the caller pays, and hands over tokens beside its arguments. `visible` is the same for a
 * client that reads and writes nothing but arguments and results.
 */
export type Way = 'local' | 'remote' | 'visible'

/** Hints for a host that decides which calls a person has to allow. */
export type ToolAnnotations = {
  readOnlyHint: boolean
  /** Whether it can use something up, or end it. */
  destructiveHint: boolean
  /** Whether repeating the call changes nothing more. */
  idempotentHint: boolean
  /** Whether it moves money, or hands over what strangers wrote. */
  openWorldHint: boolean
}

export type ToolDefinition<Name extends string = string> = {
  name: Name
  title: string
  description: string
  annotations: ToolAnnotations
  inputSchema: TSchema
  outputSchema: TSchema
}

/** The description of a tool on one way in: what all share, and what only this way has. */
export const describe = (way: Way, texts: { all: string } & Partial<Record<Way, string>>): string =>
  [texts.all, texts[way] ?? (way === 'visible' ? texts.remote : undefined)]
    .filter((text) => text !== undefined)
    .join(' ')
