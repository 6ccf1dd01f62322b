/** The page with the reference, generated from /openapi.json. */
import { button, field, notice } from '../components.ts'
import { breakable, byId, el, fill } from '../dom.ts'
import { joined, type Openapi, type Operation, operationsOf } from './openapi.ts'
import { operationView } from './operation-view.ts'

/** The groups in the order in which people need them. Any others follow. */
const GROUPS: Record<string, string> = {
  payments: 'Buying',
  catch: 'CATCH',
  whisper: 'WHISPER',
  pulse: 'PULSE',
  gate: 'GATE',
  system: 'The service itself',
  simulator: 'The simulator',
}

const place = byId('reference')
await start()

async function start(): Promise<void> {
  try {
    const main = await load('/openapi.json')
    const others = (main.tags ?? []).flatMap(({ externalDocs }) => externalDocs?.url ?? [])
    const paths = others.map((url) => new URL(url).pathname)
    show(joined([main, ...(await Promise.all(paths.map(load)))]))
  } catch (error) {
    fill(
      place,
      el(
        'div',
        { class: 'stack' },
        notice('bad', el('p', {}, 'The list of operations could not be loaded.')),
        button('Try again', start),
      ),
    )
    reportError(error)
  }
}

async function load(path: string): Promise<Openapi> {
  const answer = await fetch(path)
  if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}`)
  return (await answer.json()) as Openapi
}

function show(openapi: Openapi): void {
  const operations = operationsOf(openapi)
  const tags = [...new Set([...Object.keys(GROUPS), ...operations.map(({ tag }) => tag)])]
  const groups = tags
    .map((tag) => ({ tag, operations: operations.filter((each) => each.tag === tag) }))
    .filter((group) => group.operations.length > 0)

  const filter = el('input', { type: 'search', autocomplete: 'off', spellcheck: 'false' })
  const none = el(
    'p',
    { class: 'notice', hidden: true },
    'No operations match. ',
    button('Show all', clear, { kind: 'link' }),
  )
  const found = el('p', { class: 'small quiet', role: 'status' })
  const contents = el(
    'details',
    { class: 'contents', open: matchMedia('(min-width: 52.01rem)').matches },
    el('summary', { class: 'contents-title' }, 'Contents'),
    ...groups.map(({ tag, operations }) =>
      el(
        'section',
        { 'data-group': tag },
        el('h2', {}, el('a', { href: `#${tag}` }, titleOf(tag))),
        el('ul', {}, ...operations.map(contentsLine)),
      ),
    ),
  )
  fill(
    place,
    el(
      'nav',
      { class: 'aside', 'aria-label': 'Operations' },
      field('Filter', filter),
      found,
      contents,
    ),
    el(
      'div',
      { class: 'operations' },
      none,
      ...groups.map(({ tag, operations }) =>
        el(
          'section',
          { id: tag, 'aria-label': titleOf(tag), 'data-group': tag },
          el('h2', {}, titleOf(tag)),
          ...operations.map((each) => operationView(each, openapi, location.origin)),
        ),
      ),
    ),
  )

  const narrow = (): void => {
    const words = filter.value.toLowerCase().split(/\s+/)
    const isShown = (each: Operation): boolean => words.every((word) => textOf(each).includes(word))
    const shown = new Set(operations.filter(isShown).map(({ id }) => id))
    for (const element of place.querySelectorAll<HTMLElement>('[data-operation]')) {
      element.hidden = !shown.has(element.dataset.operation ?? '')
    }
    for (const section of place.querySelectorAll<HTMLElement>('[data-group]')) {
      section.hidden = section.querySelector('[data-operation]:not([hidden])') === null
    }
    found.textContent = `${shown.size} of ${operations.length} operations`
    none.hidden = shown.size > 0
  }
  function clear(): void {
    filter.value = ''
    narrow()
    filter.focus()
  }

  filter.addEventListener('input', narrow)
  narrow()
  // When the browser looked for the address's anchor, the operations were not on the page yet.
  document.getElementById(location.hash.slice(1))?.scrollIntoView()
  unfoldForPrint()
}

function contentsLine({ id, methods, path, summary = '' }: Operation): HTMLElement {
  return el(
    'li',
    { 'data-operation': id },
    el(
      'a',
      { href: `#${id}`, title: summary },
      el('span', { class: 'method' }, methods.length > 2 ? 'ANY' : (methods[0] ?? '')),
      ' ',
      el('span', {}, ...breakable(path)),
    ),
  )
}

function textOf({ methods, path, summary = '', tag }: Operation): string {
  return [...methods, path, summary, tag, titleOf(tag)].join(' ').toLowerCase()
}

function titleOf(tag: string): string {
  return GROUPS[tag] ?? tag
}

/** Opens all details before printing, since paper cannot be clicked. */
function unfoldForPrint(): void {
  let folded: HTMLDetailsElement[] = []
  addEventListener('beforeprint', () => {
    folded = [...place.querySelectorAll<HTMLDetailsElement>('.operation details:not([open])')]
    for (const each of folded) each.open = true
  })
  addEventListener('afterprint', () => {
    for (const each of folded) each.open = false
  })
}
