/** Whose rows a statement changes, counts and deletes: those of its project, intent or receipt, and in time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IntentRow } from '../../src/gate/store.ts'
import { aGate, authorized, givesBack, pay, type World } from '../support/gate.ts'

const ROUTE = { routeId: 'render', method: 'POST', pattern: '/render/*', priceSats: 50 }

const anotherProject = async ({ projects, lnurl }: World): Promise<string> =>
  (await projects.add({ address: lnurl.address, routes: [ROUTE], credits: 10 })).projectId

/** Gives each receipt of the intent back, until it is refused. */
async function exhaust(world: World, intent: IntentRow): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await givesBack(world, intent, (await pay(world, intent)).receipt_id)
  }
}

/** All that the store has of a project. */
async function rowsOf({ db }: World, projectId: string) {
  const tables = ['gate_project', 'gate_route', 'gate_intent', 'gate_receipt']
  const rows = tables.map((table) =>
    db.read(`select * from ${table} where project_id = $1 order by 1, 2`, projectId),
  )
  return Promise.all(rows)
}

test('whatever is done with one project leaves the rows of another as they are', async (t) => {
  const world = await aGate(t)
  const { projects, projectId, service } = world
  const other = await anotherProject(world)
  await world.quoted({ project: other })
  const paid = await world.quoted({ project: other })
  const back = await world.quoted({ project: other })
  const owed = await world.quoted({ project: other })
  await pay(world, paid)
  await service.giveBack(back, (await pay(world, back)).receipt_id)
  await exhaust(world, owed)
  const before = await rowsOf(world, other)

  const mine = [await world.quoted(), await world.quoted(), await world.quoted()]
  for (const { project_id } of mine) assert.equal(project_id, projectId)
  const [first, second, third] = mine
  assert.ok(first && second && third)
  assert.equal((await pay(world, first)).credits_remaining, 9)
  world.wallet.pay(second.bolt11)
  assert.equal((await authorized(service.poll(second))).credits_remaining, 8)
  await service.poll(third)
  await exhaust(world, first)
  await projects.honour(first.intent_id)
  await projects.honour(third.intent_id)
  assert.equal((await pay(world, first)).project_id, projectId)
  await projects.grant(projectId, 5)
  await projects.rotateKey(projectId)
  await projects.addRoute(projectId, { ...ROUTE, routeId: 'pong' })
  await projects.removeRoute(projectId, 'render')
  await projects.suspend(projectId)
  assert.deepEqual(await rowsOf(world, other), before)

  await projects.suspend(other)
  await projects.resume(projectId)
  assert.equal((await projects.show(other)).isSuspended, true)
  assert.equal((await projects.show(projectId)).isSuspended, false)
  const { credits, openIntents, authorizedIntents, routes } = await projects.show(projectId)
  assert.deepEqual([credits, openIntents, authorizedIntents], [13, 1, 2])
  assert.deepEqual(
    routes.map(({ routeId }) => routeId),
    ['ping', 'pong'],
  )
})

test('an intent whose provider failed is refused to all who asked at once, and made for the next', async (t) => {
  const world = await aGate(t)
  world.lnurl.answers.invoice = () => ({ status: 'ERROR', reason: 'no' })
  const key = 'a-key-of-one'
  const outcomes = await Promise.all([world.open({ key }), world.open({ key })])
  assert.deepEqual(outcomes, [{ kind: 'checkout unavailable' }, { kind: 'checkout unavailable' }])
  world.lnurl.answers = {}
  assert.equal((await world.open({ key })).kind, 'quote')
})
