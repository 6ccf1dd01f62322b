/** The page with the reference, made of /openapi-all.json. */
import './docs.css'
import { useEffect, useState } from 'preact/hooks'
import { service } from '../lib/service.ts'
import { CodeBox } from '../ui/copy.tsx'
import { Input } from '../ui/field.tsx'
import { Icon } from '../ui/icons.tsx'
import { mount } from '../ui/overlay.tsx'
import { Loaded, Pre } from '../ui/show.tsx'
import {
  type Answer,
  type Content,
  lineOf,
  noteOf,
  type Openapi,
  type Operation,
  operationsOf,
  shapeOf,
} from './openapi.ts'

const loadAll = async (): Promise<Operation[]> =>
  operationsOf(await service.get<Openapi>({ path: '/openapi-all.json', isRepeatable: true }))

function Reference({ operations }: { operations: readonly Operation[] }) {
  const [filter, setFilter] = useState('')
  // When the browser looked for the address's anchor, the operations were not on the page yet.
  useEffect(() => document.getElementById(location.hash.slice(1))?.scrollIntoView(), [])
  const words = filter.toLowerCase().split(/\s+/)
  const found = operations.filter((each) => words.every((word) => textOf(each).includes(word)))
  return (
    <div class="operations stack loose">
      <Input label="Filter" type="search" onText={setFilter} />
      <p class="small quiet" role="status">
        {`${found.length} of ${operations.length} operations`}
      </p>
      {[...Map.groupBy(found, ({ tag }) => tag)].map(([tag, within]) => (
        <section key={tag} class="stack tight" aria-label={tag}>
          <h2>{tag}</h2>
          {within.map((each) => (
            <OperationView key={each.id} operation={each} />
          ))}
        </section>
      ))}
    </div>
  )
}

const textOf = ({ methods, path, summary, tag }: Operation): string =>
  [...methods, path, summary, tag].join(' ').toLowerCase()

function OperationView({ operation }: { operation: Operation }) {
  const { id, methods, path, summary = '', parameters = [], requestBody, responses } = operation
  const access = operation.security?.map((way) => Object.keys(way)[0] ?? 'none').join(', or ')
  const lines = parameters.map(({ in: place, description = '', ...part }) =>
    lineOf(part.name, { ...part, description: `in the ${place}; ${description}` }),
  )
  return (
    <details id={id} class="operation" open={location.hash === `#${id}`}>
      <summary class="address">
        {methods.map((method) => (
          <span key={method}>
            <span class="method">{method}</span>{' '}
          </span>
        ))}
        {/* It may break into lines at its separators. */}
        <code>{path.split(/(?=[/.])/).map((part, at) => [at > 0 && <wbr />, part])}</code>{' '}
        <span class="quiet">{summary}</span> <Icon name="chevron" class="chevron" />
      </summary>
      <p class="small quiet">{`Authorization: ${access || 'none'}`}</p>
      <CodeBox text={curlFor(operation, location.origin)} label={`an example: ${summary}`} />
      {lines.length > 0 && <Shape head="Parameters" label="Parameters" text={lines.join('\n')} />}
      <Kinds label="Body" content={requestBody?.content} />
      <section class="stack tight">
        <h3>Answers</h3>
        {Object.entries(responses ?? {}).map(([status, answer]) => (
          <AnswerView key={status} status={status} answer={answer} />
        ))}
      </section>
    </details>
  )
}

function AnswerView({ status, answer }: { status: string; answer: Answer }) {
  const { description, headers = {}, content = {} } = answer
  // The top of the page describes the body of errors once.
  const kinds = Object.entries(content).filter(([, { schema }]) => schema?.title !== 'Error')
  const lines = Object.entries(headers).map(([name, header]) =>
    lineOf(name, { ...header, required: true }),
  )
  const head = (
    <>
      <span class="answer-status" data-class={status[0]}>
        {status}
      </span>
      {/* The document marks code like Markdown. */}
      <span>
        {description.split('`').map((part, at) => (at % 2 === 1 ? <code>{part}</code> : part))}
      </span>
    </>
  )
  if (kinds.length === 0 && lines.length === 0) return <div class="answer">{head}</div>
  return (
    <details>
      <summary class="answer">{head}</summary>
      {lines.length > 0 && <Shape head="Headers" label="Headers" text={lines.join('\n')} />}
      <Kinds label="Answer" content={Object.fromEntries(kinds)} />
    </details>
  )
}

function Kinds({ label, content = {} }: { label: string; content: Content | undefined }) {
  return Object.entries(content).map(([type, { schema = {} }]) => {
    const head = [`${label}: ${type}`, noteOf(schema)].filter(Boolean).join('; ')
    return <Shape key={type} head={head} label={label} text={shapeOf(schema)} />
  })
}

const Shape = ({ head, label, text }: { head: string; label: string; text: string }) => (
  <div class="stack tight">
    <p class="small quiet">{head}</p>
    <Pre kind="content shape" label={label}>
      {text
        .split(/^(\s*\/\/ .*)$/m)
        .map((part, at) => (at % 2 === 1 ? <span class="quiet">{part}</span> : part))}
    </Pre>
  </div>
)

/** The curl command for an operation. The reader replaces the words in capitals. */
function curlFor(operation: Operation, baseUrl: string): string {
  const { methods, path, parameters = [], responses = {}, requestBody, security = [] } = operation
  const method = methods.includes('POST') ? 'POST' : (methods[0] ?? 'GET')
  const isStream = Object.values(responses).some(
    ({ content = {} }) => 'text/event-stream' in content,
  )
  // `publicId` becomes `PUBLIC_ID`.
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name.replaceAll(/(?=[A-Z])/g, '_').toUpperCase(),
  )
  const start = `curl ${isStream ? '-N ' : ''}${method === 'GET' ? '' : `-X ${method} `}`
  const parts = [`${start}'${baseUrl}${address}'`]
  if (security.length > 0 && security.every((way) => 'bearer' in way))
    parts.push(`-H 'Authorization: Bearer TOKEN'`)
  for (const { in: place, name, required, example } of parameters) {
    if (place !== 'header' || !required || name === 'authorization') continue
    // A key of the example would find somebody else's order.
    parts.push(`-H '${name}: ${name === 'idempotency-key' ? 'A_FRESH_UUID' : example}'`)
  }
  const [[type, { example }] = ['', {}]] = Object.entries(requestBody?.content ?? {})
  if (type !== '') parts.push(`-H 'Content-Type: ${type}'`)
  if (type.includes('json')) parts.push(`-d '${JSON.stringify(example)}'`)
  else if (type !== '') parts.push('--data-binary @FILE')
  return parts.join(' \\\n  ')
}

mount(
  <Loaded load={loadAll} waiting={<div class="skeleton operation" aria-hidden="true" />}>
    {(operations) => <Reference operations={operations} />}
  </Loaded>,
)
