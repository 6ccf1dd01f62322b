/** Each statement of projects and routes changes one, and leaves the others alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import {
  deleteRoute,
  grantCredits,
  insertRoute,
  MAX_CREDITS,
  replaceKey,
  resumeProject,
  suspendProject,
} from '../../src/gate/store.ts'
import { aGateStore, T } from '../support/gate-store.ts'

test('a project is found by its id or its key, alone, and all in the order in which they came', async (t) => {
  const { store } = await aGateStore(t)
  const q = {
    ...{ project_id: 'q', key_hash: Buffer.from('key of q'), address: 'q@example.com' },
    ...{ verification: 'provider', credits: 10, created_at: T - 2, suspended_at: null },
  }
  const bytes = (row: object | null) =>
    row && 'key_hash' in row ? { ...row, key_hash: Buffer.from(row.key_hash as Uint8Array) } : row
  assert.deepEqual(bytes(await store.project('q')), q)
  assert.deepEqual(bytes(await store.projectOfKey(Buffer.from('key of q'))), q)
  assert.equal(await store.project('none'), null)
  assert.equal(await store.projectOfKey(Buffer.from('no key')), null)
  assert.deepEqual(
    (await store.projects()).map(({ project_id }) => project_id),
    ['r', 'q', 'p'],
  )
})

test('a project is suspended and resumed once, and alone', async (t) => {
  const { run, store } = await aGateStore(t)
  const suspended = async () =>
    (await store.projects()).map(({ project_id, suspended_at }) => `${project_id} ${suspended_at}`)
  await run(suspendProject('q', T))
  await assert.rejects(run(suspendProject('q', T + 1)), UnitRefused)
  await assert.rejects(run(suspendProject('none', T + 1)), UnitRefused)
  assert.deepEqual(await suspended(), ['r null', `q ${T}`, 'p null'])
  await run(suspendProject('p', T))
  await run(resumeProject('q'))
  for (const name of ['q', 'r', 'none']) await assert.rejects(run(resumeProject(name)), UnitRefused)
  assert.deepEqual(await suspended(), ['r null', 'q null', `p ${T}`])
})

test('a project gets another key, and then its old one finds nothing', async (t) => {
  const { run, store } = await aGateStore(t)
  const found = async (key: string) => (await store.projectOfKey(Buffer.from(key)))?.project_id
  await run(replaceKey('q', Buffer.from('new')))
  assert.deepEqual(
    [await found('new'), await found('key of q'), await found('key of p'), await found('key of r')],
    ['q', undefined, 'p', 'r'],
  )
  await assert.rejects(run(replaceKey('none', Buffer.from('other'))), UnitRefused)
})

test('credits are granted to one project, up to a billion', async (t) => {
  const { run, credits } = await aGateStore(t)
  assert.deepEqual((await run(grantCredits('q', 5))).all, [{ credits: 15 }])
  assert.deepEqual(await credits(), { p: 10, q: 15, r: 10 })
  await assert.rejects(run(grantCredits('q', MAX_CREDITS - 14)), UnitRefused)
  await assert.rejects(run(grantCredits('none', 1)), UnitRefused)
  await run(grantCredits('q', MAX_CREDITS - 15))
  assert.deepEqual(await credits(), { p: 10, q: MAX_CREDITS, r: 10 })
})

test('a route is of one project, once there, and removed alone', async (t) => {
  const { run, store } = await aGateStore(t)
  const pong = { routeId: 'pong', method: 'GET', pattern: '/pong', priceSats: 7 }
  await run(insertRoute('q', pong))
  await assert.rejects(run(insertRoute('q', { ...pong, priceSats: 1 })), UnitRefused)
  await assert.rejects(run(insertRoute('none', pong)), UnitRefused)
  const row = {
    ...{ project_id: 'q', route_id: 'pong', method: 'GET', pattern: '/pong', price_sats: 7 },
  }
  assert.deepEqual(await store.route('q', 'pong'), row)
  assert.equal(await store.route('p', 'pong'), null)
  assert.equal(await store.route('q', 'none'), null)
  const routes = async (project: string) =>
    (await store.routes(project)).map(({ project_id, route_id }) => `${project_id} ${route_id}`)
  assert.deepEqual(await routes('q'), ['q pong', 'q render'])
  await run(deleteRoute('q', 'render'))
  await assert.rejects(run(deleteRoute('q', 'render')), UnitRefused)
  assert.deepEqual(
    [await routes('p'), await routes('q'), await routes('r')],
    [['p render'], ['q pong'], ['r render']],
  )
})
