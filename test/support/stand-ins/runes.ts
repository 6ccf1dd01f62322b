/**
 * The rules of Core Lightning's runes that our recipes use, made from the documentation of createrune and checkrune:
 * restrictions that must all hold, each with alternatives of which one must.
 */
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'

/** As in `createrune restrictions=…`. Without any, the rune may do everything. */
export type Restrictions = string[][]

type RuneCall = { method: string; params: Record<string, unknown>; now: number }

/** Why the call is not permitted, in the node's words, or null. */
export function runeRefusal(
  restrictions: Restrictions,
  call: RuneCall,
  lastUsed: number | undefined,
): string | null {
  for (const alternatives of restrictions) {
    const complaints = alternatives.map((each) => complaintOf(each, call, lastUsed))
    if (!complaints.includes(null)) return complaints.join(' AND ')
  }
  return null
}

function complaintOf(
  alternative: string,
  call: RuneCall,
  lastUsed: number | undefined,
): string | null {
  const [, name = '', operator = '', value = ''] = /^(\w+)([=/<])(.*)$/.exec(alternative) ?? []
  if (name === 'rate') {
    const isTooSoon = lastUsed !== undefined && call.now - lastUsed < 60_000 / Number(value)
    return isTooSoon ? 'too soon' : null
  }
  const field = fieldOf(name, call)
  if (field === undefined) return `${name} not present`
  switch (operator) {
    case '=':
      return field === value ? null : `${name} is not equal to ${value}`
    case '/':
      return field === value ? `${name} is equal to ${value}` : null
    case '<':
      if (typeof field !== 'number') return `${name} is not an integer field`
      return field < Number(value) ? null : `${name} is greater or equal to ${value}`
    default:
      throw new Error(`the stand-in does not know this restriction of a rune: ${alternative}`)
  }
}

/** A number for what Core Lightning reads as an integer, else text. */
function fieldOf(name: string, { method, params }: RuneCall): number | string | undefined {
  if (name === 'method') return method
  if (name === 'pinvbolt11_amount') {
    const { bolt11 } = params
    return bolt11 === undefined
      ? undefined
      : (decodeInvoice(String(bolt11)).amountMsat ?? undefined)
  }
  const [, param] = /^pname(\w+)$/.exec(name) ?? []
  if (param === undefined) throw new Error(`the stand-in does not know the name ${name} of a rune`)
  const given = params[param]
  if (given === undefined) return undefined
  return Number.isSafeInteger(given) ? Number(given) : String(given)
}
