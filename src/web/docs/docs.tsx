/** The page with the reference, generated from /openapi.json. */
import './docs.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Button } from '../ui/button.tsx'
import { CodeBox } from '../ui/copy.tsx'
import { Input } from '../ui/field.tsx'
import { mount } from '../ui/overlay.tsx'
import { Failure, Notice, Pre } from '../ui/show.tsx'
import { curlFor, needsToken } from './curl.ts'
import {
  type Answer,
  headerName,
  joined,
  linesOf,
  noteOf,
  type Openapi,
  type Operation,
  operationsOf,
  resolved,
  type Schema,
  shapeOf,
} from './openapi.ts'

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
const titleOf = (tag: string): string => GROUPS[tag] ?? tag

async function loadAll(): Promise<Openapi> {
  const main = await load('/openapi.json')
  const others = (main.tags ?? []).flatMap(({ externalDocs }) => externalDocs?.url ?? [])
  return joined([main, ...(await Promise.all(others.map((url) => load(new URL(url).pathname))))])
}

async function load(path: string): Promise<Openapi> {
  const answer = await fetch(path)
  if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}`)
  return (await answer.json()) as Openapi
}

function Page() {
  const openapi = useSignal<Openapi | 'failed' | null>(null)
  const filter = useSignal('')
  async function start(): Promise<void> {
    try {
      openapi.value = await loadAll()
      // When the browser looked for the address's anchor, the operations were not on the page yet.
      requestAnimationFrame(() => document.getElementById(location.hash.slice(1))?.scrollIntoView())
    } catch (error) {
      openapi.value = 'failed'
      reportError(error)
    }
  }
  useEffect(() => void start(), [])
  const shown = openapi.value
  if (shown === null) return <div class="skeleton operation" aria-hidden="true" />
  if (shown === 'failed') {
    const says = 'The list of operations could not be loaded.'
    return <Failure error={null} says={says} onAgain={start} />
  }
  const operations = operationsOf(shown)
  const words = filter.value.toLowerCase().split(/\s+/)
  const found = operations.filter((each) => words.every((word) => textOf(each).includes(word)))
  const tags = [...new Set([...Object.keys(GROUPS), ...operations.map(({ tag }) => tag)])]
  const groups = tags
    .map((tag) => ({ tag, operations: found.filter((each) => each.tag === tag) }))
    .filter((group) => group.operations.length > 0)
  return (
    <div class="reference">
      <nav class="aside stack tight" aria-label="Operations">
        <Input
          label="Filter"
          type="search"
          value={filter.value}
          onText={(text) => {
            filter.value = text
          }}
        />
        <p class="small quiet" role="status">
          {`${found.length} of ${operations.length} operations`}
        </p>
        <details class="contents" open={matchMedia('(min-width: 52.01rem)').matches}>
          <summary>Contents</summary>
          {groups.map(({ tag, operations }) => (
            <section key={tag}>
              <h2>
                <a href={`#${tag}`}>{titleOf(tag)}</a>
              </h2>
              <ul>
                {operations.map(({ id, methods, path, summary = '' }) => (
                  <li key={id}>
                    <a href={`#${id}`} title={summary}>
                      <span class="method">{methods.length > 2 ? 'ANY' : methods[0]}</span>{' '}
                      <span>
                        <Breakable text={path} />
                      </span>
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </details>
      </nav>
      <div class="operations stack loose">
        {found.length === 0 && (
          <Notice
            action={
              <Button
                onClick={() => {
                  filter.value = ''
                }}
              >
                Show all
              </Button>
            }
          >
            No operations match.
          </Notice>
        )}
        {groups.map(({ tag, operations }) => (
          <section key={tag} id={tag} class="stack" aria-label={titleOf(tag)}>
            <h2>{titleOf(tag)}</h2>
            {operations.map((each) => (
              <OperationView key={each.id} operation={each} openapi={shown} />
            ))}
          </section>
        ))}
      </div>
    </div>
  )
}

const textOf = ({ methods, path, summary = '', tag }: Operation): string =>
  [...methods, path, summary, tag, titleOf(tag)].join(' ').toLowerCase()

function OperationView({ operation, openapi }: { operation: Operation; openapi: Openapi }) {
  const {
    id,
    methods,
    path,
    summary = '',
    parameters = [],
    requestBody,
    responses = {},
  } = operation
  return (
    <article id={id} class="operation card stack">
      <h3>
        <a href={`#${id}`} class="anchor" aria-label={`A link to: ${summary}`}>
          #
        </a>
        {summary}
      </h3>
      <p class="address">
        {methods.map((method) => (
          <span key={method}>
            <span class="method">{method}</span>{' '}
          </span>
        ))}
        <code>
          <Breakable text={path} />
        </code>
      </p>
      <p class="small quiet">{accessOf(operation)}</p>
      <CodeBox text={curlFor(operation, location.origin)} label={`an example: ${summary}`} />
      {parameters.length > 0 && (
        <section class="stack tight">
          <h4>Parameters</h4>
          <Shape label="Parameters" text={parameterLines(operation, openapi)} />
        </section>
      )}
      {Object.entries(requestBody?.content ?? {}).map(([type, { schema = {} }]) => (
        <section class="stack tight" key={type}>
          <h4>Body: {type}</h4>
          <Shape label="Body" text={described(schema, openapi)} />
        </section>
      ))}
      <section class="stack tight">
        <h4>Answers</h4>
        {Object.entries(responses).map(([status, answer]) => (
          <AnswerView key={status} status={status} answer={answer} openapi={openapi} />
        ))}
      </section>
    </article>
  )
}

function accessOf(operation: Operation): string {
  const { security = [], tag } = operation
  if (needsToken(operation)) return 'Needs a token: Authorization: Bearer.'
  if (security.some((way) => Object.hasOwn(way, 'payment'))) {
    return 'Needs no token. A paid repeat carries a Payment or an L402 credential; the native flow polls instead.'
  }
  if (operation.path.startsWith('/c/')) {
    return 'Needs no token. With the ingest token as Authorization: Bearer, the event is marked authenticated.'
  }
  return tag === 'gate' && security.length > 0
    ? 'Needs the capability of a project, or a credential that is bound to the request.'
    : 'Needs no token.'
}

const PLACES = ['path', 'query', 'header'] as const

function parameterLines({ parameters = [] }: Operation, openapi: Openapi): string {
  const sorted = PLACES.flatMap((place) => parameters.filter((each) => each.in === place))
  return linesOf(
    sorted.map(({ name, in: place, required = false, description = '', schema = {} }) => ({
      name: place === 'header' ? headerName(name) : name,
      note: [`in the ${place}`, description, noteOf(schema)].filter(Boolean).join('; '),
      isRequired: required,
      shape: shapeOf(schema, openapi),
    })),
  )
}

/** A schema without fields says what it is in its note alone. */
function described(schema: Schema, openapi: Openapi): string {
  const note = noteOf(schema)
  return `${note === '' ? '' : `// ${note}\n`}${shapeOf(schema, openapi)}`
}

function AnswerView({
  status,
  answer,
  openapi,
}: {
  status: string
  answer: Answer
  openapi: Openapi
}) {
  const { description, headers = {}, content = {} } = answer
  // The top of the page describes the body of errors once.
  const kinds = Object.entries(content).filter(
    ([, { schema = {} }]) => resolved(schema, openapi).name !== 'Error',
  )
  const names = Object.entries(headers)
  const head = (
    <>
      <span class="answer-status" data-class={status[0]}>
        {status}
      </span>
      <span>
        <WithCode text={description} />
      </span>
    </>
  )
  if (kinds.length === 0 && names.length === 0) return <div class="answer">{head}</div>
  return (
    <details>
      <summary class="answer">{head}</summary>
      <div class="stack">
        {names.length > 0 && (
          <Shape
            label="Headers"
            text={linesOf(
              names.map(([name, { description: note = '', schema = {} }]) => {
                return { name, note, isRequired: true, shape: shapeOf(schema, openapi) }
              }),
            )}
          />
        )}
        {kinds.map(([type, { schema = {} }]) => (
          <div key={type} class="stack tight">
            <p class="small quiet">{type}</p>
            <Shape label="Answer" text={described(schema, openapi)} />
          </div>
        ))}
      </div>
    </details>
  )
}

/** Long notes wrap. */
function Shape({ label, text }: { label: string; text: string }) {
  return (
    <Pre kind="content shape" label={label}>
      {text
        .split(/^(\s*\/\/ .*)$/m)
        .map((part, index) => (index % 2 === 1 ? <span class="quiet">{part}</span> : part))}
    </Pre>
  )
}

/** A path or a dotted name, which may break into lines at its separators. */
function Breakable({ text }: { text: string }) {
  return <>{text.split(/(?=[/.])/).map((part, index) => [index > 0 && <wbr />, part])}</>
}

/** The document marks code like Markdown. */
function WithCode({ text }: { text: string }) {
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>
}

mount(<Page />)
