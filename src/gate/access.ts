/** Authorization and limits: the capability of a project, and the intent of a path. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { bearerOf } from '../http/bearer.ts'
import { type Problem, problem } from '../http/errors.ts'
import { LIMITS, type Limits } from '../http/limits.ts'
import { isVisitorNetwork } from '../protocol/visitor-network.ts'
import type { IntentRow } from './intent-store.ts'
import { NEW_INTENTS, NEW_INTENTS_OF_VISITOR } from './limits.ts'
import type { ProjectRow } from './project-store.ts'
import type { GateService } from './service.ts'

export type OfIntent = { Params: { intentId: string } }

/** Whether `X-Gate-Project` must name the project, too. */
type Named = 'named project' | 'any project'

/** The intent of the path, which must be of the bearer's project and for the request of its headers. */
export async function ownIntent(
  { service, limits }: { service: GateService; limits: Limits },
  request: FastifyRequest<OfIntent>,
  reply: FastifyReply,
  {
    named = 'any project',
    bucketOf = ({ intent_id }) => intent_id,
  }: { named?: Named; bucketOf?: (intent: IntentRow) => string } = {},
): Promise<IntentRow> {
  const project = await ownProject(service, request, named)
  if (!project) return limits.refuse(invalidCapability(), request, reply)
  const intent = await service.intent(project.project_id, request.params.intentId)
  // Guessing is paid for as a visit is, so that it takes nothing from those who have an intent.
  if (!intent) await takeVisit(limits, project, request, reply)
  else await limits.take(LIMITS.poll, bucketOf(intent), reply)
  if (!intent || !isRequestOf(service, intent, request)) throw mismatch()
  return intent
}

/**
 * Takes from what its visitor may open, where the project says who that is, and otherwise from what
 * the project may. Asked only where no intent is known, so that no visit stands in the way of a proof.
 */
export async function takeVisit(
  limits: Limits,
  { project_id }: ProjectRow,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const network = header(request, 'x-gate-visitor')
  if (network === null || !isVisitorNetwork(network))
    return limits.take(NEW_INTENTS, project_id, reply)
  await limits.take(NEW_INTENTS_OF_VISITOR, `${project_id} ${network}`, reply)
}

/** The project of the bearer, which must be the one that is named, where one has to be. */
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

/** Whether the intent is for the request that the headers name. They may name no request. */
export function isRequestOf(
  service: GateService,
  intent: IntentRow,
  request: FastifyRequest,
): boolean {
  const fields = request.raw.headersDistinct
  const isNamed = fields['x-gate-method'] !== undefined || fields['x-gate-path'] !== undefined
  if (!isNamed) return true
  return service.isBound(intent, {
    method: header(request, 'x-gate-method') ?? intent.method,
    path: header(request, 'x-gate-path') ?? intent.path,
  })
}

/** The value of a header that comes in exactly one line, else null. */
export function header(request: FastifyRequest, name: string): string | null {
  const lines = request.raw.headersDistinct[name]
  return lines?.length === 1 ? (lines[0] ?? null) : null
}

/** RFC 9110 §15.5.2 asks for a challenge with every 401. */
export const invalidCapability = (): Problem =>
  problem('invalid project capability', { 'www-authenticate': 'Bearer' })
export const mismatch = (): Problem => problem('intent mismatch', { 'www-authenticate': 'Bearer' })
