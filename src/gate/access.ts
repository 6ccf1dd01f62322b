/** Authorization and limits: the capability of a project, and the intent of a path. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { bearerOf } from '../http/credentials.ts'
import { type Problem, problem } from '../http/errors.ts'
import { LIMITS, type Limits } from '../http/limits.ts'
import { isVisitorNetwork } from '../protocol/ip-address.ts'
import { invalidCapability } from './intents.ts'
import { NEW_INTENTS, NEW_INTENTS_OF_VISITOR } from './limits.ts'
import type { GateService } from './service.ts'
import type { IntentRow, ProjectRow } from './store.ts'

export type OfIntent = { Params: { intentId: string } }

/** Whether `X-Gate-Project` must name the project too. */
type Named = 'named project' | 'any project'

/**
 * The intent of the path. It must belong to the bearer's project, and to the protected request that
 * the headers name.
 */
export async function ownIntent({
  service,
  limits,
  request,
  reply,
  named = 'any project',
  bucketOf = ({ intent_id }) => intent_id,
}: {
  service: GateService
  limits: Limits
  request: FastifyRequest<OfIntent>
  reply: FastifyReply
  named?: Named
  bucketOf?: (intent: IntentRow) => string
}): Promise<IntentRow> {
  const project = await ownProject(service, request, named)
  if (!project) return limits.refuse(invalidCapability(), request, reply)
  const intent = await service.intent(project.project_id, request.params.intentId)
  // A guessed id counts as a new visit, so that guesses do not use up the polls of real intents.
  if (!intent) await takeVisit({ limits, project, request, reply })
  else await limits.take(LIMITS.poll, bucketOf(intent), reply)
  if (!intent || !isRequestOf(service, intent, request)) throw mismatch()
  return intent
}

/**
 * Counts a new intent: against the visitor's limit if the project names the visitor's network, else
 * against the project's. Requests with a known intent do not count, so that visits never delay a
 * proof.
 */
export async function takeVisit({
  limits,
  project,
  request,
  reply,
}: {
  limits: Limits
  project: ProjectRow
  request: FastifyRequest
  reply: FastifyReply
}): Promise<void> {
  const network = header(request, 'x-gate-visitor')
  if (network === null || !isVisitorNetwork(network))
    return limits.take(NEW_INTENTS, project.project_id, reply)
  await limits.take(NEW_INTENTS_OF_VISITOR, `${project.project_id} ${network}`, reply)
}

/** The bearer's project. With `named project`, `X-Gate-Project` must name it. */
export async function ownProject(
  service: GateService,
  request: FastifyRequest,
  named: Named = 'named project',
): Promise<ProjectRow | null> {
  const capability = bearerOf(request.raw, 'gate_key')
  const project = capability === null ? null : await service.projectOf(capability)
  const isNamed = project?.project_id === header(request, 'x-gate-project')
  return project && (isNamed || named === 'any project') ? project : null
}

/** Whether the intent is for the request that the headers name, or for what they name of it. */
export function isRequestOf(
  service: GateService,
  intent: IntentRow,
  request: FastifyRequest,
): boolean {
  // Two lines name two requests, and no intent is for a request with an empty method or path.
  const named = (name: string, otherwise: string): string =>
    request.raw.headersDistinct[name] === undefined ? otherwise : (header(request, name) ?? '')
  return service.isBound(intent, {
    method: named('x-gate-method', intent.method),
    path: named('x-gate-path', intent.path),
  })
}

/** The value of a header with exactly one line, else null. */
export function header(request: FastifyRequest, name: string): string | null {
  const lines = request.raw.headersDistinct[name]
  return lines?.length === 1 ? (lines[0] ?? null) : null
}

export const mismatch = (): Problem => problem('intent mismatch', { 'www-authenticate': 'Bearer' })
