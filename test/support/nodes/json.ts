/** Reads the nodes' JSON. Tests can rely on its form, which TypeScript does not know. */

export type JsonObject = { [name: string]: unknown }

export function object(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null) return { ...value }
  throw new Error('expected an object')
}

export function list(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  throw new Error('expected a list')
}

export function string(value: unknown): string {
  if (typeof value === 'string') return value
  throw new Error('expected a string')
}

export function number(value: unknown): number {
  if (typeof value === 'number') return value
  throw new Error('expected a number')
}
