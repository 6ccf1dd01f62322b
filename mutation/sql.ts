/**
 * Mutants of SQL: of a statement's text, each with one small change that the store still accepts. A parameter never
 * leaves the text, because an engine would refuse its value.
 */

/** Replaces the characters from `start` to `end`. */
type Edit = { start: number; end: number; text: string }
/** `depth` counts the parentheses around it. Those themselves stand outside. */
type Token = { text: string; start: number; end: number; depth: number }

/** Stands for an expression inside a template. */
const HOLE = /[\ue000-\uf8ff]/
const TOKEN =
  /'[^']*'|\$(?:\d+|[\ue000-\uf8ff])|[\ue000-\uf8ff]|[a-z_][\w.]*|\d[\d_]*|<=|>=|<>|\|\||[<>=+\-*/(),]/gi

/** Whether a text is SQL, or a part of it that has conditions. */
export const isSql = (text: string): boolean =>
  /^\s*(select\s|insert into\s|update\s\S+\s+set\s|delete from\s|with \w+ as \()/.test(text) ||
  /^\s*(and|or|case when|order by|limit) .*(\$|[<>=]|\bby\b)/s.test(text) ||
  (/ (and|or) /.test(text) && /[<>=]| is (not )?null/.test(text))

/** The mutants of a text, in which each hole is one character from U+E000 on. */
export function mutantsOf(text: string): string[] {
  const tokens = tokenize(text)
  const edits = [
    ...comparisons(tokens),
    ...sums(tokens),
    ...conditions(tokens, text),
    ...lists(tokens),
    ...orders(tokens),
    ...limits(tokens),
    ...conflicts(tokens, text),
    ...assignments(tokens, text),
    ...aggregates(tokens),
  ]
  return [
    ...new Set(
      edits.map(({ start, end, text: by }) => text.slice(0, start) + by + text.slice(end)),
    ),
  ].filter((mutant) => mutant !== text)
}

/** What a mutant changed: the words around it, before and after. */
export function changeOf(before: string, after: string): { from: string; to: string } {
  let start = 0
  while (start < before.length && before[start] === after[start]) start++
  let end = 0
  const most = Math.min(before.length, after.length) - start
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end++
  const wordStart = before.slice(0, Math.max(0, start - CONTEXT)).search(/\S+\s*$/)
  const from = Math.max(0, wordStart)
  const rest = before.slice(before.length - end).search(/.{12}(\s|$)/s)
  const more = rest < 0 ? end : Math.min(end, rest + 12)
  return {
    from: before.slice(from, before.length - end + more),
    to: after.slice(from, after.length - end + more),
  }
}
const CONTEXT = 24

function tokenize(text: string): Token[] {
  let depth = 0
  return [...text.matchAll(TOKEN)].map(({ 0: found, index: start }) => {
    if (found === ')') depth--
    const token = { text: found, start, end: start + found.length, depth }
    if (found === '(') depth++
    return token
  })
}

const COMPARED: Record<string, string> = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' }
const comparisons = (tokens: Token[]): Edit[] =>
  tokens.flatMap(({ start, end, text }) =>
    COMPARED[text] === undefined ? [] : [{ start, end, text: COMPARED[text] }],
  )

const isOperand = (token: Token | undefined): boolean =>
  token !== undefined && /^[\w$')\ue000-\uf8ff]/.test(token.text) && !isKeyword(token.text)

const sums = (tokens: Token[]): Edit[] =>
  tokens.flatMap(({ start, end, text }, i) => {
    if (text !== '+' && text !== '-') return []
    if (!isOperand(tokens[i - 1]) || tokens[i + 1]?.text === '0') return []
    return [{ start, end, text: text === '+' ? '-' : '+' }]
  })

const KEYWORDS = new Set(
  `and or not in is like between exists select from where set values on conflict do when then else end case as by
  group order having limit returning union join left inner update insert into delete with all distinct desc asc cast`.split(
    /\s+/,
  ),
)
const isKeyword = (text: string): boolean => KEYWORDS.has(text.toLowerCase())

const BEGINS = new Set(['where', 'having', 'when', 'on'])
const ENDS = new Set(
  'where having when on then else end group order limit returning union join left inner set do from as'.split(
    ' ',
  ),
)

/** Each condition between `and` and `or` holds always, or never. */
function conditions(tokens: Token[], text: string): Edit[] {
  const edits: Edit[] = []
  const regions: Token[][] = []
  // A part of a condition, such as `and attempts = 0`.
  const [first] = tokens
  if (first && !/^(select|insert|update|delete|with|case|order|limit)$/i.test(first.text)) {
    const isJoined = first.text === 'and' || first.text === 'or'
    regions.push(regionFrom(tokens, isJoined ? 1 : 0))
  }
  for (const [i, { text: word }] of tokens.entries()) {
    const next = tokens[i + 1]
    if (word === 'on' && next?.text === 'conflict') continue
    if (BEGINS.has(word)) regions.push(regionFrom(tokens, i + 1))
    const before = tokens[i - 1]?.text
    const isGroup =
      word === '(' &&
      (before === undefined || ['and', 'or', 'not', 'where', 'when', 'on', '('].includes(before))
    if (isGroup && next && next.text !== 'select') {
      const region = regionFrom(tokens, i + 1)
      if (region.some((one) => isJoin(one) && one.depth === next.depth)) regions.push(region)
    }
  }
  for (const region of regions) edits.push(...operandsOf(region, text))
  return edits
}

/** Up to the keyword that ends it, or the end of its parentheses. */
function regionFrom(tokens: Token[], from: number): Token[] {
  // An opening parenthesis has the depth of what stands around it.
  const depth = tokens[from]?.depth ?? 0
  let to = from
  for (; to < tokens.length; to++) {
    const token = tokens[to]
    if (!token || token.depth < depth) break
    if (token.depth === depth && to > from && ENDS.has(token.text)) break
    if (token.depth === depth && token.text === ',') break
  }
  return tokens.slice(from, to)
}

const isJoin = ({ text }: Token): boolean => text === 'and' || text === 'or'

function operandsOf(region: Token[], text: string): Edit[] {
  const depth = region[0]?.depth
  const operands: { tokens: Token[]; before: string; after: string }[] = []
  let current: Token[] = []
  let before = ''
  let isBetween = false
  for (const token of region) {
    if (token.text === 'between' && token.depth === depth) isBetween = true
    if (isJoin(token) && token.depth === depth && !(isBetween && token.text === 'and')) {
      operands.push({ tokens: current, before, after: token.text })
      before = token.text
      current = []
    } else {
      if (isJoin(token) && token.depth === depth) isBetween = false
      current.push(token)
    }
  }
  operands.push({ tokens: current, before, after: '' })
  return operands.flatMap(({ tokens, before: left, after: right }) => {
    const operand = withoutTail(tokens)
    const start = operand[0]?.start
    const end = operand.at(-1)?.end
    if (start === undefined || end === undefined || operand.length === 0) return []
    const isAlternative = (left === 'or' || right === 'or') && left !== 'and' && right !== 'and'
    const condition = text.slice(start, end)
    const always = `(${condition} or 1 = 1)`
    return [{ start, end, text: isAlternative ? `(${condition} and 1 = 0)` : always }]
  })
}

/** Without the holes at its end that are clauses of their own: they follow what is complete. */
function withoutTail(tokens: Token[]): Token[] {
  let end = tokens.length
  while (end > 1 && HOLE.test(tokens[end - 1]?.text ?? '') && isOperand(tokens[end - 2])) end--
  return tokens.slice(0, end)
}

/** One of several texts in `in ('a', 'b')` is missing. */
function lists(tokens: Token[]): Edit[] {
  const edits: Edit[] = []
  for (const [i, { text }] of tokens.entries()) {
    if (text !== 'in' || tokens[i + 1]?.text !== '(') continue
    const inside = tokens.slice(i + 2)
    const end = inside.findIndex((token) => token.text === ')')
    const elements = inside.slice(0, end).filter((token) => token.text !== ',')
    if (elements.length < 2 || !elements.every((token) => token.text.startsWith("'"))) continue
    for (const [n, element] of elements.entries()) {
      const after = elements[n + 1]
      const before = elements[n - 1]
      edits.push(
        after
          ? { start: element.start, end: after.start, text: '' }
          : { start: before?.end ?? element.start, end: element.end, text: '' },
      )
    }
  }
  return edits
}

/** Each key of an order turns round. */
function orders(tokens: Token[]): Edit[] {
  const edits: Edit[] = []
  for (const [i, { text, depth }] of tokens.entries()) {
    if (text !== 'by' || tokens[i - 1]?.text !== 'order') continue
    for (let at = i + 1; at < tokens.length; at++) {
      const token = tokens[at]
      if (!token || token.depth < depth || (token.depth === depth && ENDS.has(token.text))) break
      if (token.depth !== depth || token.text === ',' || isKeyword(token.text)) continue
      const next = tokens[at + 1]
      if (HOLE.test(token.text) && at > i + 1) break
      if (next?.text === 'desc') edits.push({ start: token.end, end: next.end, text: '' })
      else edits.push({ start: token.end, end: token.end, text: ' desc' })
    }
  }
  return edits
}

const MANY = '1000000'
const limits = (tokens: Token[]): Edit[] =>
  tokens.flatMap(({ text, end }) =>
    text === 'limit' ? [{ start: end, end, text: ` ${MANY} +` }] : [],
  )

/** `do nothing` becomes the failure that it prevents. */
function conflicts(tokens: Token[], text: string): Edit[] {
  return tokens.flatMap(({ text: word, start }, i) => {
    if (word !== 'on' || tokens[i + 1]?.text !== 'conflict') return []
    const end = tokens.findIndex((token, at) => at > i && token.text.toLowerCase() === 'nothing')
    const isNothing = end > 0 && !/\bdo update\b/.test(text.slice(start, tokens[end]?.end))
    return isNothing ? [{ start, end: tokens[end]?.end ?? start, text: '' }] : []
  })
}

/** A column keeps its value. */
function assignments(tokens: Token[], text: string): Edit[] {
  const edits: Edit[] = []
  for (const [i, { text: word, depth }] of tokens.entries()) {
    if (word !== 'set') continue
    let at = i + 1
    while (at < tokens.length) {
      const column = tokens[at]
      if (!column || tokens[at + 1]?.text !== '=') break
      let to = at + 2
      for (; to < tokens.length; to++) {
        const token = tokens[to]
        if (!token || token.depth < depth) break
        if (token.depth !== depth) continue
        if (token.text === ',' || ['where', 'returning', 'from'].includes(token.text)) break
      }
      const start = tokens[at + 2]?.start ?? 0
      const end = tokens[to - 1]?.end ?? 0
      const value = text.slice(start, end)
      if (value !== column.text) {
        edits.push({ start, end, text: `case when 1 = 1 then ${column.text} else ${value} end` })
      }
      if (tokens[to]?.text !== ',') break
      at = to + 1
    }
  }
  return edits
}

const AGGREGATES: Record<string, string> = { min: 'max', max: 'min' }
const aggregates = (tokens: Token[]): Edit[] =>
  tokens.flatMap(({ text, start, end }, i) =>
    AGGREGATES[text] !== undefined && tokens[i + 1]?.text === '('
      ? [{ start, end, text: AGGREGATES[text] }]
      : [],
  )
