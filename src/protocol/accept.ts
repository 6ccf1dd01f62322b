/** The request fields in which clients announce the payment protocols that they support. */

/** Longer preference lists are ignored, like malformed ones. */
export const MAX_ACCEPT_CHARS = 4096

/**
 * Whether `Accept-Payment` asks for this method and intent (draft-httpauth-payment-01, Client
 * Payment Preferences). The most specific range decides; a malformed field is ignored, so false.
 */
export function acceptsPayment(
  fieldLines: readonly string[],
  method: string,
  intent: string,
): boolean {
  const elements = listElements(fieldLines)
  let best = { specificity: -1, accepted: false }
  for (const element of elements) {
    const range = PAYMENT_RANGE.exec(element)
    if (range === null) return false
    const [, rangeMethod, rangeIntent, weight = '1'] = range
    if (rangeMethod !== '*' && rangeMethod !== method) continue
    if (rangeIntent !== '*' && rangeIntent !== intent) continue
    const specificity = (rangeMethod === '*' ? 0 : 2) + (rangeIntent === '*' ? 0 : 1)
    const accepted = Number(weight) > 0
    if (specificity > best.specificity) best = { specificity, accepted }
    // If a range occurs twice with different weights, `q=0` ("do not use") wins.
    else if (specificity === best.specificity) best.accepted &&= accepted
  }
  return best.accepted
}

/** Whether `Accept-Authenticate` names L402, or LSAT, its old name. */
export function acceptsL402(fieldLines: readonly string[]): boolean {
  return listElements(fieldLines).some((element) => /^(?:L402|LSAT)$/i.test(element))
}

const NAME = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
// RFC 9110 §12.4.2: three decimals at most.
const WEIGHT = '(0(?:\\.[0-9]{0,3})?|1(?:\\.0{0,3})?)'
const PAYMENT_RANGE = new RegExp(`^(${NAME})/(${NAME})(?:[ \\t]*;[ \\t]*[qQ]=${WEIGHT})?$`)

function listElements(fieldLines: readonly string[]): string[] {
  const text = fieldLines.join(',')
  if (text.length > MAX_ACCEPT_CHARS) return []
  // Empty elements are to be ignored (RFC 9110 §5.6.1.2).
  return text
    .split(',')
    .map((element) => element.trim())
    .filter((element) => element !== '')
}
