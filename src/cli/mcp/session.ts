/** One connection to a host: the calls under way, and what they share. */
import { randomBytes } from 'node:crypto'
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type Server,
} from '@modelcontextprotocol/server'
import type { ToolCall } from '../../tools/tools.ts'
import type { Cli } from '../cli.ts'
import { CliError } from '../exit.ts'
import { dropUnopened } from '../vault/unopened.ts'

/** What the host hands back with the person's answer, signed by this process. */
type Asked = { about: string }

export type Session = ReturnType<typeof createSession>

/** A call of a tool, with the context of a command, whose signal is this call's. */
export type Call = ToolCall & { session: Session; cli: Cli }

/** @param showCodes whether the user wants the codes of all sent whispers in the results. */
export function createSession(cli: Cli, showCodes: boolean) {
  const over = new AbortController()
  const turns = new Map<string, Promise<unknown>>()
  const session = {
    cli,
    showCodes,
    /** The library's side of the connection, once its host has begun to speak. */
    server: null as Server | null,
    /** Signs what is asked, and knows its own signature. */
    codec: createRequestStateCodec<Asked>({ key: randomBytes(32) }),
    /** Aborted when the host has gone. */
    over: over.signal,
    /** What the model sent under a name, as a digest, so that a repeated call is told from another text. */
    sent: new Map<string, string>(),
    /** The bytes of whispers that were handed to the host, by their row in the vault. */
    opened: new Set<number>(),
    /** Runs what is about a name after all that was begun for it before. */
    inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
      const done = (turns.get(name) ?? Promise.resolve()).then(work, work)
      turns.set(name, done)
      const end = (): boolean => turns.get(name) === done && turns.delete(name)
      done.then(end, end)
      return done
    },
    /** Runs a call. Its signal is aborted when the host cancels it or goes away. */
    run<T>(called: ToolCall, work: (call: Call) => Promise<T>): Promise<T> {
      const signal = AbortSignal.any([called.ctx.mcpReq.signal, over.signal])
      return work({ ...called, session, cli: cliOf(cli, { signal }) })
    },
    /** Aborts all calls, and removes what the host has got. The process ends when they have ended. */
    end(): void {
      over.abort()
      for (const id of session.opened) dropUnopened(cli, { id })
    },
  }
  return session
}

/** A command's context with another signal or ceiling. It writes nothing to stdout, which is the protocol's. */
export function cliOf(
  cli: Cli,
  { signal, maxSats = cli.maxSats }: { signal: AbortSignal; maxSats?: number },
): Cli {
  return {
    ...cli,
    signal,
    maxSats,
    isJson: false,
    answer: () => undefined,
    mayfly: (baseUrl = cli.url, store) => cli.mayflyAt(baseUrl, store),
  }
}

/** The call ends for now: its host asks the person, and then repeats it with the answer. */
export class NeedsInput extends Error {
  readonly result: InputRequiredResult
  constructor(result: InputRequiredResult) {
    super('the person is asked')
    this.result = result
  }
}

/** Whether the host of this call can ask its user. */
export function canAsk({ session, ctx }: Call): boolean {
  const envelope: Record<string, unknown> = { ...ctx.mcpReq.envelope }
  const told = envelope[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined
  const { elicitation } = told ?? session.server?.getClientCapabilities() ?? {}
  // Before forms and URLs were told apart, an empty object meant forms.
  return elicitation !== undefined && ('form' in elicitation || !('url' in elicitation))
}

export type Question = {
  /** What is asked, for the person. */
  message: string
  /** Everything that the person agrees to. An answer to anything else counts for nothing. */
  about: readonly (string | number)[]
  /** What did not happen, if the person does not agree. */
  refusal: string
}

/**
 * Returns once the person has agreed, and where the host cannot ask.
 * @throws NeedsInput, or CliError if the person does not agree.
 */
export async function confirm(call: Call, { message, about, refusal }: Question): Promise<void> {
  if (!canAsk(call)) return
  const { session, ctx } = call
  const asked: Asked = { about: JSON.stringify(about) }
  const answer = inputResponse(ctx.mcpReq.inputResponses, 'confirm')
  const isAnswered = ctx.mcpReq.requestState<Asked>()?.about === asked.about
  if (isAnswered && answer.kind === 'elicit') {
    if (answer.action === 'accept') return
    throw new CliError(`The user did not agree. ${refusal}`)
  }
  const requestedSchema = { type: 'object' as const, properties: {} }
  throw new NeedsInput(
    inputRequired({
      inputRequests: { confirm: inputRequired.elicit({ message, requestedSchema }) },
      requestState: await session.codec.mint(asked, ctx),
    }),
  )
}
