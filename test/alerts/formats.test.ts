import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { calledUrl, formatted, type UrlFormat } from '../../src/lib/alert-formats.ts'
import file from '../vectors/alert-formats.json' with { type: 'json' }

const MESSAGE = {
  id: 'msg_1',
  type: 'pulse.late',
  occurredAt: Date.parse('2026-01-02T03:04:05.678Z'),
}

describe('the form of an alert', () => {
  for (const vector of file.vectors) {
    test(`the form of an alert keeps to this: ${vector.note}`, () => {
      const { format, url, expect, title, text, data = {}, isUrgent = false } = vector
      const message = { ...MESSAGE, content: { title, text, data, isUrgent } }
      const sent = formatted(format as UrlFormat, new URL(url), message)
      assert.deepEqual(
        { url: sent.url?.href, body: JSON.parse(sent.body) },
        { url: expect.url, body: expect.body },
      )
    })
  }
})

test('a long alert for Discord is cut at 2000 characters, which is all that it takes', () => {
  const content = { title: 'x'.repeat(3000), text: '', data: {}, isUrgent: false }
  const { body } = formatted('discord', new URL('https://discord.com/api/webhooks/1/x'), {
    ...MESSAGE,
    content,
  })
  assert.equal(JSON.parse(body).content.length, 2000)
})

test('a URL of ntfy without a topic is none', () => {
  for (const path of ['/', '/topic/', '/to%20pic', `/${'x'.repeat(65)}`, '/tö']) {
    const called = calledUrl('ntfy', new URL(`https://ntfy.sh${path}`))
    assert.deepEqual(called, { expected: 'a URL whose path ends with the topic' }, path)
  }
})
