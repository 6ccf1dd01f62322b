/**
 * The rules of Core Lightning's runes, made from the documentation of createrune and checkrune: restrictions that
 * must all hold, each with alternatives of which one must.
 */
import { decodeInvoice, InvalidInvoice } from '../../../src/protocol/bolt11.ts'

/** As in `createrune restrictions=…`. Without any, the rune may do everything. */
export type Restrictions = string[][]

export type RuneCall = { method: string; params: Record<string, unknown>; now: number }

/** One alternative. */
type Test = { name: string; operator: string; value: string }

const OPERATOR = /^(\w*)([=/^$~<>!#])(.*)$/s
const UNIT_MS: Record<string, number> = { sec: 1000, min: 60_000, hour: 3_600_000, day: 86_400_000 }

/** Why the call is not permitted, in the node's words, or null. */
export function runeRefusal(
  restrictions: Restrictions,
  call: RuneCall,
  lastUsed: number | undefined,
): string | null {
  for (const alternatives of restrictions) {
    const complaints = alternatives.map((each) => complaintOf(read(each), call, lastUsed))
    if (!complaints.includes(null)) return complaints.join(' AND ')
  }
  return null
}

function read(alternative: string): Test {
  const [, name = '', operator = '', value = ''] = OPERATOR.exec(alternative) ?? []
  if (operator === '') throw new Error(`no restriction of a rune: ${alternative}`)
  return { name, operator, value }
}

function complaintOf(test: Test, call: RuneCall, lastUsed: number | undefined): string | null {
  const { name, operator, value } = test
  if (operator === '#') return null
  if (name === 'rate') return tooSoon(60_000 / Number(value), call, lastUsed)
  if (name === 'per') {
    const [, count = '', unit = 'sec'] = /^(\d+)([a-z]*)$/.exec(value) ?? []
    return tooSoon(Number(count) * (UNIT_MS[unit || 'sec'] ?? Number.NaN), call, lastUsed)
  }
  const found = fieldOf(name, call)
  if ('complaint' in found) return found.complaint
  const { field } = found
  if (operator === '!') return field === undefined ? null : `${name} is present`
  if (field === undefined) return `${name} not present`
  return comparison(test, field)
}

/** A number for what Core Lightning reads as an integer, else text. */
function fieldOf(
  name: string,
  { method, params, now }: RuneCall,
): { field: number | string | undefined } | { complaint: string } {
  if (name === 'method') return { field: method }
  if (name === 'time') return { field: Math.floor(now / 1000) }
  if (name === 'pnum') return { field: Object.keys(params).length }
  const [, invoiceParam, part] = /^pinv(\w+)_(amount|description)$/.exec(name) ?? []
  if (invoiceParam !== undefined) {
    const text = params[invoiceParam]
    if (text === undefined) return { complaint: `Unknown invoice parameter ${invoiceParam}` }
    try {
      const { amountMsat, description } = decodeInvoice(String(text))
      return { field: (part === 'amount' ? amountMsat : description) ?? undefined }
    } catch (error) {
      if (!(error instanceof InvalidInvoice)) throw error
      return { complaint: `Invalid invoice: ${error.message}` }
    }
  }
  const [, param] = /^pname(\w+)$/.exec(name) ?? []
  if (param === undefined) throw new Error(`the stand-in does not know the name ${name} of a rune`)
  const given = params[param]
  if (given === undefined || given === null) return { field: undefined }
  return { field: Number.isSafeInteger(given) ? Number(given) : String(given) }
}

function comparison({ name, operator, value }: Test, field: number | string): string | null {
  const text = String(field)
  const isNumber = typeof field === 'number'
  const [holds, complaint] = {
    '=': [text === value, 'is not equal to'],
    '/': [text !== value, 'is equal to'],
    '^': [text.startsWith(value), 'does not start with'],
    $: [text.endsWith(value), 'does not end with'],
    '~': [text.includes(value), 'does not contain'],
    '<': [isNumber && field < Number(value), 'is greater or equal to'],
    '>': [isNumber && field > Number(value), 'is less or equal to'],
  }[operator] as [boolean, string]
  if ('<>'.includes(operator) && !isNumber) return `${name} is not an integer field`
  return holds ? null : `${name} ${complaint} ${value}`
}

function tooSoon(ms: number, { now }: RuneCall, lastUsed: number | undefined): string | null {
  return lastUsed !== undefined && now - lastUsed < ms ? 'too soon' : null
}
