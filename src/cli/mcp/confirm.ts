/** Asks the person at the host before money moves or something is destroyed, where the host can. */
import {
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { CliError } from '../exit.ts'
import type { Call } from './session.ts'

/** What the host hands back with the person's answer, signed by this process. */
export type Asked = { about: string }

export type Asking = Call & { mint(asked: Asked, ctx: ServerContext): Promise<string> }

export type Question = {
  /** What is asked, for the person. */
  message: string
  /** Everything that the person agrees to. An answer to anything else counts for nothing. */
  about: readonly (string | number)[]
  /** What did not happen, if the person does not agree. */
  refusal: string
}

/**
 * Null once the person has agreed, and where the host cannot ask. Else what the host has to ask first.
 * @throws CliError if the person does not agree.
 */
export async function confirm(
  { session, ctx, mint }: Asking,
  { message, about, refusal }: Question,
): Promise<InputRequiredResult | null> {
  if (!session.canAsk(ctx)) return null
  const asked: Asked = { about: JSON.stringify(about) }
  const answer = inputResponse(ctx.mcpReq.inputResponses, KEY)
  const isAnswered = ctx.mcpReq.requestState<Asked>()?.about === asked.about
  if (isAnswered && answer.kind === 'elicit') {
    if (answer.action === 'accept') return null
    throw new CliError(`The user did not agree. ${refusal}`)
  }
  return inputRequired({
    inputRequests: {
      [KEY]: inputRequired.elicit({ message, requestedSchema: NOTHING_TO_FILL_IN }),
    },
    requestState: await mint(asked, ctx),
  })
}

const KEY = 'confirm'
const NOTHING_TO_FILL_IN = { type: 'object' as const, properties: {} }
