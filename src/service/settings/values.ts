/** The settings of plain values: texts, numbers, choices, URLs and files. An error's message completes "<name> must be …". */
import { readFileSync } from 'node:fs'
import { messageOf } from '../../lib/errors.ts'
import { serviceOrigin } from '../../lib/service-origin.ts'

/** @param expected completes "must be …" for an empty value, or one with spaces. */
export function text(expected: string): (value: string) => string {
  return (value) => {
    if (value === '' || /\s/.test(value)) throw new Error(expected)
    return value
  }
}

/** @param others the other values that the setting accepts, for the sentence. */
export function integer(min: number, max: number, others = ''): (value: string) => number {
  return (value) => {
    const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    throw new Error(`${others}an integer from ${min} to ${max}`)
  }
}

export function oneOf<const T extends readonly string[]>(values: T): (value: string) => T[number] {
  return (value) => {
    const found = values.find((known) => known === value)
    if (found === undefined) throw new Error(`one of ${values.join(', ')}`)
    return found
  }
}

export function baseUrl(value: string): string {
  const origin = serviceOrigin(value)
  if (origin === null) throw new Error('an http or https URL without path, query or credentials')
  return origin
}

/** @param others the other values that the setting accepts, for the sentence. */
export function jsonFile(file: string, others = ''): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`${others}a readable JSON file (${messageOf(error)})`)
  }
}

export function fileList(value: string): string[] {
  const files = value.split(',').map((file) => file.trim())
  if (value !== '' && (files.length > 2 || files.includes(''))) throw new Error('one file or two')
  return value === '' ? [] : files
}

/** A tebibyte: more than the disk of a small machine, and small enough for exact sums. */
const MAX_UNPAID_BYTES = 1024 ** 4

export function unpaidBytes(value: string): { perNetwork: number; inAll: number } {
  const parts = value.split(',').map((part) => part.trim())
  const [perNetwork = 0, inAll = 0] = parts.map(Number)
  const isTwo = parts.length === 2 && parts.every((part) => /^[1-9]\d{0,14}$/.test(part))
  if (!isTwo || perNetwork > inAll || inAll > MAX_UNPAID_BYTES)
    throw new Error(
      `two numbers of bytes from 1 to ${MAX_UNPAID_BYTES}, comma-separated: per client network, and at least as many in all`,
    )
  return { perNetwork, inAll }
}
