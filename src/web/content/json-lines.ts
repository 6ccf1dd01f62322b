/** JSON as indented lines of tokens, each as it was sent: parsing would change large numbers and drop repeated names. */

export type TokenKind = 'name' | 'string' | 'number' | 'word' | 'sign'
export type Token = { kind: TokenKind; text: string }
export type JsonLine = {
  /** How many brackets are open around it. */
  depth: number
  tokens: readonly Token[]
  /** Whether it ends with a bracket whose content is on the lines below. */
  opens: boolean
  /** Whether it begins with the bracket that closes such lines. */
  closes: boolean
}

/** A token of JSON: a string, a bracket, a comma, a colon, or any other word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g

/** @param text valid JSON. */
export function* jsonLines(text: string): Generator<JsonLine, void, undefined> {
  let depth = 0
  let tokens: Token[] = []
  let closes = false
  let last = ''
  const line = (opens: boolean): JsonLine => ({ depth, tokens, opens, closes })
  for (const [token] of text.matchAll(TOKEN)) {
    const isEnd = token === '}' || token === ']'
    const wasOpening = last === '{' || last === '['
    if (wasOpening && !isEnd) {
      yield line(true)
      depth++
      tokens = []
      closes = false
    } else if (isEnd && !wasOpening) {
      yield line(false)
      depth--
      tokens = []
      closes = true
    } else if (last === ',') {
      yield line(false)
      tokens = []
      closes = false
    }
    if (token === ':') {
      const name = tokens.at(-1)
      if (name) tokens[tokens.length - 1] = { ...name, kind: 'name' }
      tokens.push({ kind: 'sign', text: ': ' })
    } else {
      tokens.push({ kind: kindOf(token), text: token })
    }
    last = token
  }
  if (tokens.length > 0) yield line(false)
}

function kindOf(token: string): TokenKind {
  if (token.startsWith('"')) return 'string'
  if (/^[[\]{},]$/.test(token)) return 'sign'
  return /^[-\d]/.test(token) ? 'number' : 'word'
}
