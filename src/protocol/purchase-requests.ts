/** The requests that buy: of each its path, headers and body. The SDK and the tools of `/mcp` send them. */
import { asciiJson } from '../lib/json.ts'
import type { PlanId, Product } from '../lib/product-names.ts'

export type PurchaseRequest = {
  path: string
  headers: Record<string, string>
  body: string | Uint8Array<ArrayBuffer>
}

/** @param settings what a monitor is set to from the beginning. */
export const planRequest = (
  product: Exclude<Product, 'whisper'>,
  planId: PlanId,
  settings?: object,
): PurchaseRequest => ({
  path: `/api/payments/${product}`,
  headers: {
    'content-type': 'application/json',
    ...(settings && { 'x-pulse-settings': asciiJson(settings) }),
  },
  body: JSON.stringify({ planId }),
})

export type WhisperRequestTerms = {
  planId: PlanId
  readLimit?: number | undefined
  /** RFC 3339. */
  revealAt?: string | undefined
  revealWhen?: string | undefined
  receipt?: boolean | undefined
}

export const whisperRequest = (
  { planId, readLimit, revealAt, revealWhen, receipt }: WhisperRequestTerms,
  body: Uint8Array<ArrayBuffer>,
): PurchaseRequest => ({
  path: '/api/payments/whisper',
  headers: {
    'content-type': 'application/octet-stream',
    'x-whisper-plan': planId,
    ...(readLimit === undefined ? {} : { 'x-whisper-read-limit': String(readLimit) }),
    ...(revealAt === undefined ? {} : { 'x-whisper-reveal-at': revealAt }),
    ...(revealWhen === undefined ? {} : { 'x-whisper-reveal-when': revealWhen }),
    ...(receipt ? { 'x-whisper-receipt': 'on' } : {}),
  },
  body,
})

/** @param ownerToken only the first request needs it. */
export const extensionRequest = (
  { product, publicId, planId }: { product: Product; publicId: string; planId: PlanId },
  ownerToken: string | null,
): PurchaseRequest => ({
  path: `/api/${product}/${encodeURIComponent(publicId)}/extend`,
  headers: {
    'content-type': 'application/json',
    ...(ownerToken === null ? {} : { 'x-owner-token': ownerToken }),
  },
  body: JSON.stringify({ planId }),
})
