import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import {
  createMayfly,
  eventBody,
  MayflyError,
  toHar,
  toJsonLines,
} from '../../../src/client/index.ts'
import { type ExportProgress, exportFile } from '../../../src/web/catch/export-file.ts'
import { anInbox, send, sendBare } from '../../support/catch.ts'
import { shareServer } from '../../support/shared-server.ts'
import { vectors } from '../../support/vectors.ts'

const never = new AbortController().signal

suite('the file of all requests', () => {
  const shared = shareServer()

  test('a HAR file is HAR 1.2, and has every request as it came, oldest first', async () => {
    const { client, url } = await filled()
    const progress: ExportProgress[] = []
    const onProgress = (each: ExportProgress): number => progress.push(each)
    const { blob, requests, isCut } = await exportFile(client, {
      format: 'HAR',
      url,
      signal: never,
      onProgress,
    })
    const text = await blob.text()
    const all = (await Array.fromAsync(client.events({ limit: 50 }))).toReversed()
    assert.deepEqual([requests, isCut], [all.length, false])
    assert.equal(text, toHar(all, { url }), 'as the SDK and the command line write it')
    const ajv = new Ajv({ allowUnionTypes: true })
    addFormats.default(ajv)
    const isHar = ajv.compile(vectors<object>('har-1.2'))
    const har = JSON.parse(text)
    assert.equal(isHar(har), true, JSON.stringify(isHar.errors))
    har.log.version = '1.1'
    assert.equal(isHar(har), false, 'the schema refuses what is none')
    const shares = progress.map(({ share }) => share)
    assert.deepEqual([shares.length > 1, shares.at(-1)], [true, 1])
    assert.deepEqual(shares, shares.toSorted())
  })

  test('an NDJSON file has the lines that the command line exports', async () => {
    const { client, url } = await filled()
    const { blob } = await exportFile(client, {
      format: 'NDJSON',
      url,
      signal: never,
      onProgress: () => undefined,
    })
    const all = (await Array.fromAsync(client.events({ limit: 50 }))).toReversed()
    assert.equal(await blob.text(), toJsonLines(all))
    assert.ok(all.some((event) => eventBody(event).includes(0xff)))
  })

  test('a file ends whole where it would become too large', async () => {
    const { client, url } = await filled()
    for (const format of ['HAR', 'NDJSON'] as const) {
      const { blob, requests, isCut } = await exportFile(client, {
        format,
        url,
        signal: never,
        onProgress: () => undefined,
        maxBytes: 10_000,
      })
      assert.ok(isCut && requests > 3 && blob.size < 10_100, `${requests} ${blob.size}`)
      const text = await blob.text()
      const found = format === 'HAR' ? JSON.parse(text).log.entries : text.trimEnd().split('\n')
      assert.equal(found.length, requests)
    }
  })

  test('a service that asks for a pause gets it, and an export that is left asks no more', async () => {
    const { client, url, inbox, baseUrl } = await filled()
    let asked = 0
    const isBusy = (): boolean => asked++ % 2 === 0
    const busy = createMayfly({
      baseUrl,
      fetch: async (...request) =>
        isBusy()
          ? Response.json(
              { error: 'rate limited' },
              { status: 429, headers: { 'retry-after': '0' } },
            )
          : fetch(...request),
    })
    const options = { format: 'NDJSON', url, onProgress: () => undefined } as const
    const file = await exportFile(busy.catch(inbox), { ...options, signal: never })
    assert.equal(file.requests, 63)
    const leaving = new AbortController()
    await assert.rejects(
      exportFile(client, {
        ...options,
        signal: leaving.signal,
        onProgress: () => leaving.abort(new Error('left')),
      }),
      /left/,
    )
    const broken = { page: () => Promise.reject(new MayflyError('not found', 404)) }
    await assert.rejects(exportFile(broken, { ...options, signal: never }), { phrase: 'not found' })
  })

  async function filled() {
    const server = await shared()
    const inbox = await anInbox(server)
    for (let number = 0; number < 60; number++) {
      await send(server, inbox, { path: `/${number}?n=${number}`, method: 'POST', body: '{}' })
    }
    await send(server, inbox, { method: 'PUT', body: Buffer.from([0, 255, 254]) })
    await send(server, inbox, { method: 'DELETE' })
    await sendBare(server, inbox, { headers: ['X-Latin: caf\xe9'], body: 'x' })
    const { url, mayfly } = server
    return { client: mayfly.catch(inbox), inbox, baseUrl: url, url: `${url}/c/${inbox.publicId}` }
  }
})
