/** Shows one operation of the interface. */
import { codeBox } from '../components.ts'
import { breakable, type Child, el } from '../dom.ts'
import { curlFor, needsToken } from './curl.ts'
import {
  type Answer,
  choicesOf,
  type FieldRow,
  fieldsOf,
  headerName,
  noteOf,
  type Openapi,
  type Operation,
  resolved,
  type Schema,
  typeOf,
} from './openapi.ts'

export function operationView(
  operation: Operation,
  openapi: Openapi,
  baseUrl: string,
): HTMLElement {
  const { id, methods, path, summary = '', responses = {} } = operation
  return el(
    'article',
    { id, class: 'operation card stack', 'data-operation': id },
    el(
      'h3',
      {},
      el('a', { href: `#${id}`, class: 'anchor', 'aria-label': `A link to: ${summary}` }, '#'),
      summary,
    ),
    el(
      'p',
      { class: 'address' },
      ...methods.flatMap((method) => [el('span', { class: 'method' }, method), ' ']),
      el('code', {}, ...breakable(path)),
    ),
    el('p', { class: 'small quiet' }, accessOf(operation)),
    codeBox(curlFor(operation, openapi, baseUrl), { label: `an example: ${summary}` }),
    parametersTable(operation, openapi),
    ...bodyTables(operation, openapi),
    el(
      'section',
      { class: 'stack' },
      el('h4', {}, 'Answers'),
      ...Object.entries(responses).map(([status, answer]) => answerView(status, answer, openapi)),
    ),
  )
}

function accessOf(operation: Operation): string {
  const { security = [], tag } = operation
  if (needsToken(operation)) return 'Needs a token: Authorization: Bearer.'
  if (security.some((way) => Object.hasOwn(way, 'payment'))) {
    return 'Needs no token. A paid repeat carries a Payment or an L402 credential; the native flow polls instead.'
  }
  const isIngest = operation.path.startsWith('/c/')
  return isIngest
    ? 'Needs no token. With the ingest token as Authorization: Bearer, the event is marked authenticated.'
    : tag === 'gate' && security.length > 0
      ? 'Needs the capability of a project, or a credential that is bound to the request.'
      : 'Needs no token.'
}

const PLACES = ['path', 'query', 'header'] as const

function parametersTable({ parameters = [] }: Operation, openapi: Openapi): HTMLElement | null {
  if (parameters.length === 0) return null
  const sorted = PLACES.flatMap((place) => parameters.filter((each) => each.in === place))
  const rows = sorted.map(
    ({ name, in: place, required = false, description = '', schema = {} }): FieldRow => ({
      name: place === 'header' ? headerName(name) : name,
      type: typeOf(schema, openapi),
      place,
      isRequired: required,
      note: [description, noteOf(schema)].filter((part) => part !== '').join('; '),
    }),
  )
  return titled('Parameters', fieldsTable('Parameters', rows))
}

function bodyTables({ requestBody }: Operation, openapi: Openapi): HTMLElement[] {
  return Object.entries(requestBody?.content ?? {}).map(([type, { schema = {} }]) =>
    titled(`Body: ${type}`, schemaView(schema, openapi)),
  )
}

function answerView(status: string, answer: Answer, openapi: Openapi): HTMLElement {
  const { description, headers = {}, content = {} } = answer
  const kinds = Object.entries(content).filter(([, { schema = {} }]) => !isError(schema, openapi))
  const head: Child[] = [
    el('span', { class: 'answer-status', 'data-class': status[0] ?? '' }, status),
    el('span', {}, ...withCode(description)),
  ]
  const names = Object.entries(headers)
  if (kinds.length === 0 && names.length === 0) return el('div', { class: 'answer' }, ...head)
  return el(
    'details',
    {},
    el('summary', { class: 'answer' }, ...head),
    el(
      'div',
      { class: 'stack' },
      names.length > 0 &&
        fieldsTable(
          'Headers',
          names.map(([name, { description: note = '', schema = {} }]) => {
            return { name, type: typeOf(schema, openapi), isRequired: true, note }
          }),
        ),
      ...kinds.flatMap(([type, { schema = {} }]) => [
        el('p', { class: 'small quiet' }, type),
        schemaView(schema, openapi),
      ]),
    ),
  )
}

/** Whether it is the body of errors, which the top of the page describes once. */
function isError(schema: Schema, openapi: Openapi): boolean {
  return resolved(schema, openapi).name === 'Error'
}

/** A table for each alternative of a schema. */
function schemaView(schema: Schema, openapi: Openapi): HTMLElement {
  const { schema: whole } = resolved(schema, openapi)
  const choices = whole.anyOf || whole.oneOf ? choicesOf(whole) : [schema]
  const tables = choices.flatMap((choice) => {
    const rows = fieldsOf(choice, openapi)
    const type = typeOf(choice, openapi)
    if (rows.length === 0)
      return [el('p', { class: 'small' }, [type, noteOf(choice)].filter(Boolean).join('; '))]
    const { name } = resolved(choice, openapi)
    return [
      name !== null && el('p', { class: 'small' }, el('strong', {}, name)),
      fieldsTable(name ?? 'Fields', rows),
    ]
  })
  return el('div', { class: 'stack' }, ...tables)
}

function fieldsTable(label: string, rows: readonly FieldRow[]): HTMLElement {
  const lines = rows.map(({ name, type, place, isRequired, note }) =>
    el(
      'tr',
      {},
      el('th', { scope: 'row' }, el('code', {}, ...breakable(name))),
      el(
        'td',
        {},
        el('span', { class: 'type' }, type),
        place !== undefined && el('span', { class: 'small quiet place' }, `in the ${place}`),
        !isRequired && el('span', { class: 'badge' }, 'optional'),
        note !== '' && el('div', { class: 'small quiet' }, ...withCode(note)),
      ),
    ),
  )
  return el('table', { 'aria-label': label }, el('tbody', {}, ...lines))
}

function titled(title: string, part: HTMLElement): HTMLElement {
  return el('section', { class: 'stack' }, el('h4', {}, title), part)
}

/** The text with its code marked. The document marks code like Markdown. */
function withCode(text: string): Child[] {
  return text.split('`').map((part, index) => (index % 2 === 1 ? el('code', {}, part) : part))
}
