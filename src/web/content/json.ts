/** JSON as indented text. Each token is as it was sent: parsing would change large numbers and drop repeated names. */

/** A string, a bracket, a comma, a colon, or any other word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g
/** Deeper lines are indented no further. */
const MAX_INDENTS = 40

/** @param text valid JSON. It is cut at the first line after so many characters. */
export function indented(text: string, maxCharacters = Infinity): string {
  let written = ''
  let depth = 0
  let last = ' '
  for (const [token] of text.matchAll(TOKEN)) {
    const isEnd = token === '}' || token === ']'
    if (isEnd) depth--
    if (isEnd ? !'{['.includes(last) : '{[,'.includes(last)) {
      if (written.length > maxCharacters) break
      written += `\n${'  '.repeat(Math.min(depth, MAX_INDENTS))}`
    }
    if (token === '{' || token === '[') depth++
    written += token === ':' ? ': ' : token
    last = token
  }
  return written
}
