import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { CatchCatalog, EventQuery } from '../../src/catch/schema.ts'
import { PaymentQuote } from '../../src/http/schemas.ts'
import { PRODUCT_TOKEN_KINDS, SOLD_PRODUCTS } from '../../src/lib/product-names.ts'
import { MAX_CIPHERTEXT_BYTES } from '../../src/mcp-tools/bounds.ts'
import type { ToolDefinition, Way } from '../../src/mcp-tools/definition.ts'
import { TOOL_NAMES, toolDefinitions } from '../../src/mcp-tools/tools.ts'
import { PulseCatalog, PulseStatus } from '../../src/pulse/schema.ts'
import { WHISPER_PLANS, WhisperCatalog } from '../../src/whisper/schema.ts'

const WAYS: readonly Way[] = ['local', 'remote', 'visible']
/** Every secret member of a capability. */
const SECRETS = Object.values(SOLD_PRODUCTS).flatMap(({ tokens, extraTokens }) =>
  Object.keys({ ...tokens, ...extraTokens }),
)

type Schema = { properties: Record<string, Schema>; [keyword: string]: unknown }

const tool = (name: string, way: Way = 'remote'): ToolDefinition => {
  const found = toolDefinitions(way).find((one) => one.name === name)
  assert.ok(found, name)
  return found
}
const inputOf = (name: string, way?: Way) => tool(name, way).inputSchema as unknown as Schema
const outputOf = (name: string, way?: Way) => tool(name, way).outputSchema as unknown as Schema
const propertiesOf = (schema: unknown) => (schema as Schema).properties
const constraints = ({ description, examples, ...rest }: Schema): object => rest

suite('the tools', () => {
  test('all ways in offer the same names in the same order', () => {
    for (const way of WAYS) {
      assert.deepEqual(
        toolDefinitions(way).map(({ name }) => name),
        TOOL_NAMES,
      )
    }
  })

  test('every schema is JSON Schema of an object that refuses unknown arguments', () => {
    const ajv = new Ajv({ strict: true, allowUnionTypes: true })
    addFormats.default(ajv)
    for (const way of WAYS) {
      for (const { name, inputSchema, outputSchema } of toolDefinitions(way)) {
        for (const schema of [inputSchema, outputSchema]) {
          assert.equal((schema as unknown as Schema).type, 'object', name)
          ajv.compile(JSON.parse(JSON.stringify(schema)))
        }
        assert.equal((inputSchema as unknown as Schema).additionalProperties, false, name)
      }
    }
  })

  test('no schema of the remote way in has a place for a token', () => {
    for (const way of ['local', 'remote'] as const) {
      for (const { name, inputSchema, outputSchema } of toolDefinitions(way)) {
        const members = JSON.stringify([inputSchema, outputSchema])
        for (const secret of [...SECRETS, 'token']) {
          assert.ok(!members.includes(`"${secret}"`), `${name} on ${way} has ${secret}`)
        }
      }
    }
  })

  test('only a tool that reads is marked as reading', () => {
    const reading = toolDefinitions('remote').filter(({ annotations }) => annotations.readOnlyHint)
    assert.deepEqual(
      reading.map(({ name }) => name),
      ['catalog', 'read_inbox', 'wait_for_webhook', 'monitor_status'],
    )
  })

  test('every string argument has a longest length or a list of values', () => {
    for (const { name, inputSchema } of toolDefinitions('visible')) {
      for (const [member, schema] of Object.entries(propertiesOf(inputSchema))) {
        if (schema.type === 'string') assert.ok(schema.maxLength, `${name}: ${member}`)
      }
    }
  })
})

suite('the schemas of the tools and of the products', () => {
  test('reading an inbox takes the filters of the event list, within its bounds', () => {
    const { wait, ...listed } = propertiesOf(EventQuery)
    const { publicId, maxTextBytes, ...asked } = inputOf('read_inbox').properties
    assert.deepEqual(Object.keys(asked).sort(), Object.keys(listed).sort())
    for (const [name, schema] of Object.entries(asked)) {
      const { maximum, ...rest } = constraints(listed[name] as Schema) as Record<string, unknown>
      const { maximum: _, ...own } = constraints(schema) as Record<string, unknown>
      assert.deepEqual(own, rest, name)
    }
  })

  test('a quote has the fields of the quote over HTTP', () => {
    const quote = propertiesOf(outputOf('buy_inbox').properties.quote)
    const { proofRequired, ...listed } = propertiesOf(PaymentQuote)
    assert.deepEqual(Object.keys(quote), Object.keys(listed))
  })

  test('the status of a monitor is a part of its status over HTTP', () => {
    const listed = propertiesOf(PulseStatus)
    for (const name of Object.keys(outputOf('monitor_status').properties)) {
      assert.ok(listed[name], name)
    }
  })

  test('the plans have the limits of the catalogue', () => {
    const { products } = outputOf('catalog').properties
    const listed = { catch: CatchCatalog, whisper: WhisperCatalog, pulse: PulseCatalog }
    for (const [name, schema] of Object.entries(listed)) {
      const plan = (of: unknown) =>
        Object.keys(propertiesOf((propertiesOf(of).plans as Schema).items)).sort()
      assert.deepEqual(plan(propertiesOf(products)[name]), plan(schema), name)
    }
  })

  test('a call carries the ciphertext of the spark and the standard plan whole', () => {
    assert.ok(MAX_CIPHERTEXT_BYTES >= WHISPER_PLANS.standard.maxCiphertextBytes)
  })

  test('every kind of token that a tool names exists', () => {
    const kinds = new Set<string>(PRODUCT_TOKEN_KINDS)
    const texts = toolDefinitions('remote').map(({ description }) => description)
    const named = texts.flatMap(
      (text) => text.match(/\b(?:catch|pulse|whisper)_[a-z]+(?=_…)/g) ?? [],
    )
    assert.ok(named.length > 0)
    for (const kind of named) assert.ok(kinds.has(kind), kind)
  })
})
