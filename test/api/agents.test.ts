import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openapi } from '../support/openapi.ts'
import { startServer } from '../support/server.ts'
import { BASE_URL } from '../support/wallet-flow.ts'

type Described = {
  'x-service-info': { docs: Record<string, string> }
  paths: Record<string, Record<string, Operation>>
}
type Operation = {
  'x-payment-info'?: unknown
  parameters: { name: string; in: string; required: boolean }[]
  responses: Record<string, { headers?: object; content: Record<string, unknown> }>
}

test('a paid operation says what it costs, and in which ways it can be paid', async (t) => {
  const document = await openapi(await startServer(t), '/openapi.json')
  const { post } = document.paths['/api/payments/catch'] ?? {}
  const { get } = document.paths['/api/buy/catch/{planId}'] ?? {}
  assert.ok(post && get)
  // A registry asks an announced operation for its 402 without any header of ours.
  assert.equal(post['x-payment-info'], undefined)
  const offer = { intent: 'charge', method: 'lightning', currency: 'sat' }
  assert.deepEqual(get['x-payment-info'], {
    offers: [
      { ...offer, amount: '100', description: 'Mayfly CATCH spark' },
      { ...offer, amount: '400', description: 'Mayfly CATCH standard' },
      { ...offer, amount: '900', description: 'Mayfly CATCH long' },
    ],
  })
  assert.deepEqual(
    post.parameters?.map((parameter) => [parameter.name, parameter.in, parameter.required]),
    [
      ['idempotency-key', 'header', true],
      ['x-payment-protocol', 'header', false],
      ['accept-payment', 'header', false],
      ['accept-authenticate', 'header', false],
      ['authorization', 'header', false],
      ['payment-preimage', 'header', false],
    ],
  )
  const rates = ['RateLimit', 'RateLimit-Policy']
  const answers = Object.entries(post.responses).map(([status, { headers = {}, content = {} }]) => [
    status,
    Object.keys(headers).filter((name) => !rates.includes(name)),
    Object.keys(content),
  ])
  const json = 'application/json'
  assert.deepEqual(answers.slice(0, 4), [
    ['200', ['Payment-Receipt'], [json]],
    ['400', [], [json]],
    ['401', ['WWW-Authenticate'], [json]],
    ['402', ['WWW-Authenticate'], [json, 'application/problem+json']],
  ])
})

test('/llms.txt tells in two pages how to buy, keep and use, under the address in use', async (t) => {
  const { url } = await startServer(t, { MAYFLY_BASE_URL: BASE_URL })
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Described
  const link = document['x-service-info'].docs.llms ?? ''
  const answer = await fetch(link.replace(BASE_URL, url))
  assert.equal(answer.status, 200)
  const text = await answer.text()
  assert.ok(text.includes(`${BASE_URL}/openapi.json`))
  assert.ok(text.includes(`${BASE_URL}/c/{publicId}`))
  assert.doesNotMatch(text, /\{base_url\}|<html/i)
  assert.ok(text.length <= 10_240, 'two pages')
  for (const path of Object.keys(document.paths)) {
    const isOurs = path.startsWith('/api/payments/') || path === '/simulator/pay'
    if (isOurs) assert.ok(text.includes(path), path)
  }
  const { paths } = await openapi({ url }, '/openapi-all.json')
  const ours = Object.keys(paths).map((path) => RegExp(`^${path.replaceAll(/{\w+}/g, '[^/]+')}$`))
  for (const [, path = ''] of text.matchAll(/\b(?:GET|POST|DELETE) (\/\S*?)(?=[\s.,:;)]|$)/g)) {
    assert.ok(
      ours.some((one) => one.test(path)),
      `${path} is one of ours`,
    )
  }
})
