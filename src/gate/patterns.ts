/** The paths that a payment can be bound to, and the route patterns that match them. */

const MAX_TARGET_CHARS = 2_048
const MAX_PATTERN_CHARS = 256

/**
 * Whether all servers read a request target (path and query) the same way. If they could differ (dot
 * segments, empty segments, encoded slashes, dots and control characters), the payer might pay for
 * one resource and get another.
 */
export function isBindable(target: string): boolean {
  if (target.length > MAX_TARGET_CHARS || !/^\/[!-~]*$/.test(target)) return false
  if (target.includes('#') || /%(?![0-9A-Fa-f]{2})/.test(target)) return false
  const path = pathOf(target)
  if (path.includes('//') || /[\\"<>^`{|}]/.test(path)) return false
  if (path.split('/').some((segment) => segment === '.' || segment === '..')) return false
  // Encoded slashes, backslashes, dots and control characters, even if encoded repeatedly.
  return !/%(?:25)*(?:2e|2f|5c|[01][0-9a-f]|7f)/i.test(path)
}

/** Whether a text is a pattern. `*` matches one segment, `**` at the end matches the rest. */
export function isPattern(pattern: string): boolean {
  if (pattern.length > MAX_PATTERN_CHARS || pattern.includes('?') || !isBindable(pattern)) {
    return false
  }
  const segments = pattern.slice(1).split('/')
  return segments.every((segment, i) => {
    if (segment === '**') return i === segments.length - 1
    return segment === '*' || !segment.includes('*')
  })
}

/** Whether the path of a bindable target matches the pattern. The query is ignored here. */
export function matchesPattern(pattern: string, target: string): boolean {
  const wanted = pattern.split('/')
  const given = pathOf(target).split('/')
  if (wanted.at(-1) === '**') {
    const fixed = wanted.slice(0, -1)
    return given.length > fixed.length && matchesSegments(fixed, given)
  }
  return given.length === wanted.length && matchesSegments(wanted, given)
}

function matchesSegments(wanted: string[], given: string[]): boolean {
  return wanted.every((segment, i) => (segment === '*' ? given[i] !== '' : segment === given[i]))
}

function pathOf(target: string): string {
  const mark = target.indexOf('?')
  return mark === -1 ? target : target.slice(0, mark)
}
