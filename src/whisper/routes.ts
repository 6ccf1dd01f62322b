/** WHISPER over HTTP: buying with the encrypted bytes as the body, and reading them. */

import type { FastifyRequest } from 'fastify'
import type { App } from '../http/app.ts'
import { bearerOf } from '../http/credentials.ts'
import { invalid, type Problem, problem } from '../http/errors.ts'
import type { Limits } from '../http/limits.ts'
import type { Memory } from '../http/memory.ts'
import { mountOneUrlWithBody } from '../http/paid/one-url.ts'
import { mountPaidRoute, type Paying } from '../http/paid/paid.ts'
import type { PaidRoute } from '../http/paid/route.ts'
import { ATTACHMENT, RETRY_AFTER } from '../http/response-headers.ts'
import { answer, errors, PlanIdSchema } from '../http/schemas.ts'
import { inWords } from '../http/validation.ts'
import { type Clock, rfc3339 } from '../lib/clock.ts'
import { isId } from '../lib/ids.ts'
import { Type } from '../lib/json-schema.ts'
import { isPlanId, type PlanId } from '../lib/product-names.ts'
import { MAX_READS } from '../protocol/whisper-code.ts'
import type { Bindings } from '../switches/switches.ts'
import { READS } from './limits.ts'
import type { WhisperTerms } from './provisioning.ts'
import { parseRevealAt } from './reveal-at.ts'
import {
  MIN_CIPHERTEXT_BYTES,
  NotRevealed,
  publicId,
  readHeaders,
  WhisperCapability,
  type WhisperPlan,
  whisperHeaders,
} from './schema.ts'
import type { WhisperService } from './service.ts'

/** The headers of a purchase. Null means that the plan's default applies. */
type Asked = {
  planId: PlanId
  readLimit: number | null
  revealAt: number | null
  wantsReceipt: boolean
  revealWhen: string | null
}

export function mountWhisper(
  app: App,
  deps: Paying & {
    service: WhisperService
    plans: Readonly<Record<PlanId, WhisperPlan>>
    clock: Clock
    memory: Memory
    bindings: Bindings
    quoteSeconds: number
  },
): void {
  const { service, plans, clock, bindings, quoteSeconds } = deps
  const termsUnder = (asked: Asked, plan: WhisperPlan): WhisperTerms => ({
    readLimit: asked.readLimit ?? plan.readLimit,
    revealAt: asked.revealAt,
    ...(asked.wantsReceipt ? { receipt: true } : {}),
    ...(asked.revealWhen === null ? {} : { revealWhen: asked.revealWhen }),
  })
  const route: PaidRoute = {
    product: 'whisper',
    path: '/api/payments/whisper',
    summary: 'Buy bounded reads of client-encrypted bytes',
    contentType: 'application/octet-stream',
    // The maximum over all plans, on sale or not: a repeat sends the body of its original order.
    maxBodyBytes: () => Math.max(...Object.values(plans).map((plan) => plan.maxCiphertextBytes)),
    bodyBytesUnder: (plan) => (plan as WhisperPlan).maxCiphertextBytes,
    tooLarge: 'ciphertext too large',
    bodySchema: Type.String({
      format: 'binary',
      description: `At least ${MIN_CIPHERTEXT_BYTES} encrypted bytes`,
      examples: ['\u0001 and the encrypted bytes, 30 or more'],
    }),
    headerSchemas: whisperHeaders,
    resourceSchema: WhisperCapability,
    phrases: [
      'invalid ciphertext',
      'ciphertext too large',
      'invalid read limit',
      'invalid reveal time',
      'invalid receipt option',
      'invalid switch',
    ],
    checkHeaders: askedIn,
    parse(body, request) {
      const asked = askedIn(request)
      if (body.length < MIN_CIPHERTEXT_BYTES) {
        throw invalid('invalid ciphertext', { expected: `at least ${MIN_CIPHERTEXT_BYTES} bytes` })
      }
      return {
        planId: asked.planId,
        terms: (plan) => termsUnder(asked, plan as WhisperPlan),
      }
    },
    plan: (planId) => (plans[planId].available ? plans[planId] : null),
    async reserve({ planId, terms, body, clientNetwork }) {
      const plan = plans[planId]
      const { readLimit, revealAt, revealWhen } = terms as WhisperTerms
      if (body.length > plan.maxCiphertextBytes) {
        throw invalid('ciphertext too large', {
          expected: `at most ${plan.maxCiphertextBytes} bytes`,
        })
      }
      if (readLimit > plan.readLimit) throw invalidReadLimit(plan.readLimit)
      const now = clock.now()
      const isInside =
        revealAt === null || (revealAt > now && revealAt < now + plan.durationSeconds * 1000)
      if (!isInside) throw invalidRevealTime()
      const needsMs = (plan.durationSeconds + quoteSeconds) * 1000
      const bind = revealWhen === undefined ? null : await bindings.reserve(revealWhen, needsMs)
      if (revealWhen !== undefined && bind === null) throw invalidSwitch()
      return (orderId) => [
        ...service.reserve({ orderId, clientNetwork, ciphertext: body }),
        ...(bind?.(orderId) ?? []),
      ]
    },
  }
  mountPaidRoute(app, deps, route)
  const { 'x-whisper-plan': _, ...headerSchemas } = whisperHeaders
  mountOneUrlWithBody(app, deps, { ...route, headerSchemas })
  mountRead(app, deps)
}

function mountRead(
  app: App,
  { service, limits, memory }: { service: WhisperService; limits: Limits; memory: Memory },
): void {
  app.get<{ Params: { publicId: string } }>(
    '/w/:publicId',
    {
      schema: {
        tags: ['whisper'],
        operationId: 'readWhisper',
        summary: 'Read the encrypted bytes; each 200 spends one read',
        description:
          'The answer is the ciphertext; the key is in the code that the sender gave. After the last read the bytes are deleted. Before its reveal time, 425 spends nothing.',
        security: [{ bearer: [] }],
        params: Type.Object({ publicId }),
        headers: Type.Object(readHeaders),
        response: {
          200: answer(Type.String({ format: 'binary' }), {
            type: 'application/octet-stream',
            example: 'the encrypted bytes',
            description: 'The bytes as they were uploaded',
            headers: ATTACHMENT,
          }),
          425: answer(NotRevealed, { description: 'not revealed', headers: RETRY_AFTER }),
          ...errors('ciphertext too large', 'not found', 'rate limited', 'internal error'),
        },
      },
    },
    async (request, reply) => {
      // Never 401: a reader must not learn whether the id exists and only the token is wrong.
      const { publicId } = request.params
      const token = bearerOf(request.raw, 'whisper_read')
      const whisper = token === null ? null : await service.find(publicId, token)
      if (!whisper) return limits.refuse(problem('not found'), request, reply)
      // After the token was checked: a stranger who knows the id must not use up its readers' limit.
      await limits.take(READS, publicId, reply)
      const bytes = whisper.byte_count ?? 0
      if (!isWithin(one(request, 'x-whisper-max-bytes'), bytes)) throw tooLong(bytes)
      const reservation = memory.forAnswer(reply, publicId)
      // Before the read is spent: a client that waits for memory or leaves must not lose a read.
      if (!(await reservation.reserve(bytes))) throw problem('request timeout')
      const reading = await reservation.whileReading(() => service.read(whisper))
      switch (reading.kind) {
        case 'gone':
          throw problem('not found')
        case 'not revealed':
          return reply
            .code(425)
            .header('retry-after', reading.retryAfterSeconds)
            .send({ error: 'not revealed', revealAt: rfc3339(reading.revealAt) })
        case 'revealed':
          return reply
            .type('application/octet-stream')
            .header('content-disposition', 'attachment')
            .send(reading.ciphertext)
      }
    },
  )
}

/** @throws Problem for a header that is missing, repeated or invalid. The address of one URL has the plan. */
function askedIn(request: FastifyRequest): Asked {
  const { planId: given } = request.params as { planId?: string }
  const planId = given ?? one(request, 'x-whisper-plan')
  if (!isPlanId(planId)) throw invalidPlan(given === undefined ? 'X-Whisper-Plan' : 'planId')
  const limitText = one(request, 'x-whisper-read-limit')
  const readLimit = limitText === null ? null : Number(limitText)
  if (limitText !== null && !(/^[1-9]\d{0,2}$/.test(limitText) && Number(limitText) <= MAX_READS)) {
    throw invalidReadLimit(MAX_READS)
  }
  const revealText = one(request, 'x-whisper-reveal-at')
  const revealAt = revealText === null ? null : parseRevealAt(revealText)
  if (revealText !== null && revealAt === null) throw invalidRevealTime()
  const receipt = one(request, 'x-whisper-receipt') ?? 'off'
  if (receipt !== 'on' && receipt !== 'off') throw invalidReceipt()
  const revealWhen = one(request, 'x-whisper-reveal-when')
  if (revealWhen !== null && !isId('pulse_switch', revealWhen)) throw invalidSwitch()
  // Only the receipt tells the buyer of a switch whether it is armed.
  return {
    planId,
    readLimit,
    revealAt,
    revealWhen,
    wantsReceipt: receipt === 'on' || revealWhen !== null,
  }
}

/** Whether a reader takes this many bytes. One that says it in a way that nobody understands takes none. */
const isWithin = (most: string | null, bytes: number): boolean =>
  most === null || (/^\d{1,15}$/.test(most) && bytes <= Number(most))

const tooLong = (bytes: number): Problem =>
  invalid('ciphertext too large', {
    field: 'X-Whisper-Max-Bytes',
    expected: `at least ${bytes}, the length of the ciphertext`,
  })

const invalidPlan = (field: string): Problem =>
  invalid('invalid plan', { field, expected: inWords(PlanIdSchema) })

const invalidReadLimit = (most: number): Problem =>
  invalid('invalid read limit', { field: 'X-Whisper-Read-Limit', expected: `1 to ${most}` })

const invalidRevealTime = (): Problem =>
  invalid('invalid reveal time', {
    field: 'X-Whisper-Reveal-At',
    expected: 'ISO 8601 with an offset, in the future and inside the lifetime of the plan',
  })

const invalidReceipt = (): Problem =>
  invalid('invalid receipt option', { field: 'X-Whisper-Receipt', expected: 'on or off' })

/** One answer for every cause, so that nobody learns more of a monitor than that it does not do. */
const invalidSwitch = (): Problem =>
  invalid('invalid switch', {
    field: 'X-Whisper-Reveal-When',
    expected: 'the switch of a monitor that is pinged in time and lasts longer than this plan',
  })

/** The value of a header, or null. The lines of a repeated one are joined, which no parser accepts. */
function one(request: FastifyRequest, name: string): string | null {
  const lines = request.raw.headersDistinct[name]
  return lines === undefined ? null : lines.join('\n')
}
