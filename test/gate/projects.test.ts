/** What the operator does with projects, and what is said where it cannot be done. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createProjects, UnknownProject } from '../../src/gate/projects.ts'
import { LnurlError } from '../../src/protocol/lnurl.ts'
import { aGate, givesBack, pay, type World } from '../support/gate.ts'
import { meanwhile } from '../support/meanwhile.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const NOBODY = 'gate_project_none'
const PONG = { routeId: 'pong', method: 'PUT', pattern: '/pong/**', priceSats: 7 }

const withoutVerification = ({ lnurl }: World): void => {
  lnurl.answers.invoice = async (_url, _response, usual) => ({
    ...(await usual()),
    verify: undefined,
  })
}

describe('a project', () => {
  test('a project is shown with its routes by id, its credits, and how many intents are open and authorized', async (t) => {
    const world = await aGate(t)
    const { projectId, projects, clock } = world
    assert.match(projectId, /^gate_project_[0-9A-Za-z]{22}$/)
    const { created_at: createdAt } = await world.project()
    assert.ok(createdAt > clock.now() - MINUTE && createdAt <= clock.now())
    const view = {
      projectId,
      address: world.lnurl.address,
      verification: 'provider',
      credits: 10,
      isSuspended: false,
      createdAt,
    }
    assert.deepEqual(await projects.list(), [view])
    await pay(world, await world.quoted())
    await world.quoted()
    await world.quoted()
    assert.deepEqual(await projects.show(projectId), {
      ...view,
      credits: 9,
      routes: [
        { routeId: 'ping', method: 'GET', pattern: '/ping', priceSats: 1 },
        { routeId: 'render', method: 'POST', pattern: '/render/*', priceSats: 50 },
      ],
      openIntents: 2,
      authorizedIntents: 1,
    })
    // The invoices live for an hour, and the provider is asked for ten minutes more.
    clock.advance(70 * MINUTE)
    assert.equal((await projects.show(projectId)).openIntents, 0)
  })

  test('a project is listed after those that are older', async (t) => {
    const { projects, projectId, clock, lnurl } = await aGate(t)
    clock.advance(1)
    const ask = { address: lnurl.address, routes: [PONG], credits: 0 }
    const second = await projects.add(ask)
    clock.advance(1)
    const third = await projects.add(ask)
    const listed = (await projects.list()).map((project) => project.projectId)
    assert.deepEqual(listed, [projectId, second.projectId, third.projectId])
  })

  test('a project takes no route twice, and asks no provider to find out', async (t) => {
    const { projects, lnurl } = await aGate(t)
    await assert.rejects(
      projects.add({
        address: lnurl.address,
        routes: [PONG, { ...PONG, method: 'GET' }],
        credits: 1,
      }),
      { name: 'ProjectError', message: 'The route pong is there twice.' },
    )
    assert.deepEqual([lnurl.requests.length, (await projects.list()).length], [0, 1])
  })

  test('a project is verified by the preimage alone where the provider does not tell of payments', async (t) => {
    const world = await aGate(t)
    withoutVerification(world)
    const { projects, lnurl } = world
    const { projectId, verification } = await projects.add({
      address: lnurl.address,
      routes: [PONG],
      credits: 1,
    })
    assert.equal(verification, 'preimage')
    assert.equal((await projects.show(projectId)).verification, 'preimage')
  })

  test('a project is added with an invoice over its lowest price, or over the least that its address takes', async (t) => {
    const { projects, lnurl } = await aGate(t)
    lnurl.answers.pay = async (_url, _response, usual) => ({
      ...(await usual()),
      minSendable: 1_001,
      maxSendable: 9_000,
    })
    const amounts = () =>
      lnurl.requests
        .filter(({ step }) => step === 'invoice')
        .map(({ url }) => new URL(url).searchParams.get('amount'))
    const add = (...prices: number[]) =>
      projects.add({
        address: lnurl.address,
        routes: prices.map((priceSats) => ({ ...PONG, routeId: `r${priceSats}`, priceSats })),
        credits: 1,
      })
    await add(9, 4, 5)
    await add()
    assert.deepEqual(amounts(), ['4000', '2000'])
    // Any of the prices may be too low or too high.
    for (const prices of [[1], [4, 1], [10], [4, 10]]) {
      await assert.rejects(add(...prices), LnurlError)
    }
    assert.equal(amounts().length, 2)
  })

  test('a project that does not exist is told of by its id, whatever is to be done with it', async (t) => {
    const { projects } = await aGate(t)
    for (const act of [
      () => projects.show(NOBODY),
      () => projects.suspend(NOBODY),
      () => projects.resume(NOBODY),
      () => projects.rotateKey(NOBODY),
      () => projects.addRoute(NOBODY, PONG),
      () => projects.removeRoute(NOBODY, 'ping'),
      () => projects.grant(NOBODY, 1),
    ]) {
      await assert.rejects(act, (error) => {
        assert.ok(error instanceof UnknownProject)
        assert.equal(error.name, 'UnknownProject')
        assert.equal(error.message, 'There is no project gate_project_none.')
        return true
      })
    }
  })

  test('a project is suspended once, and resumed once', async (t) => {
    const { projects, projectId, clock, project } = await aGate(t)
    const refused = (message: string) => ({ name: 'ProjectError', message })
    await assert.rejects(projects.resume(projectId), refused(`${projectId} is not suspended.`))
    const before = clock.now()
    await projects.suspend(projectId)
    const { suspended_at } = await project()
    assert.ok(suspended_at !== null && suspended_at >= before && suspended_at <= clock.now())
    assert.equal((await projects.show(projectId)).isSuspended, true)
    await assert.rejects(projects.suspend(projectId), refused(`${projectId} was suspended before.`))
    await projects.resume(projectId)
    assert.equal((await projects.show(projectId)).isSuspended, false)
  })

  test('a project has one capability, the newest', async (t) => {
    const { projects, projectId, service, capability } = await aGate(t)
    assert.equal((await service.projectOf(capability))?.project_id, projectId)
    const fresh = await projects.rotateKey(projectId)
    assert.equal((await service.projectOf(fresh))?.project_id, projectId)
    assert.equal(await service.projectOf(capability), null)
    assert.equal(await service.projectOf(''), null)
    assert.equal(await service.projectOf(fresh.replace('gate_key', 'gate_kex')), null)
  })

  test('a project gets a route that its address can be paid for, and each id once', async (t) => {
    const { projects, projectId } = await aGate(t)
    await projects.addRoute(projectId, PONG)
    assert.deepEqual((await projects.show(projectId)).routes[1], PONG)
    await assert.rejects(projects.addRoute(projectId, PONG), {
      name: 'ProjectError',
      message: `${projectId} has a route pong. Remove it first; open intents keep their price.`,
    })
    const dear = { ...PONG, routeId: 'dear', priceSats: 1_000_001 }
    await assert.rejects(projects.addRoute(projectId, dear), LnurlError)
    assert.equal((await projects.show(projectId)).routes.length, 3)
  })

  test('a project loses a route once', async (t) => {
    const { projects, projectId } = await aGate(t)
    await projects.removeRoute(projectId, 'ping')
    assert.deepEqual(
      (await projects.show(projectId)).routes.map(({ routeId }) => routeId),
      ['render'],
    )
    await assert.rejects(projects.removeRoute(projectId, 'ping'), {
      name: 'ProjectError',
      message: `${projectId} has no route ping.`,
    })
  })

  test('a project has a billion credits at most', async (t) => {
    const { projects, projectId } = await aGate(t)
    assert.equal(await projects.grant(projectId, 5), 15)
    assert.equal(await projects.grant(projectId, 1_000_000_000 - 15), 1_000_000_000)
    await assert.rejects(projects.grant(projectId, 1), {
      name: 'ProjectError',
      message: `${projectId} would have more than 1000000000 credits.`,
    })
    assert.equal((await projects.show(projectId)).credits, 1_000_000_000)
  })
})

describe('honouring a payment', () => {
  test('honouring a payment that the provider does not tell of is refused, because the preimage is enough', async (t) => {
    const world = await aGate(t)
    withoutVerification(world)
    const { intent_id: intentId } = await world.quoted()
    await assert.rejects(world.projects.honour(intentId), {
      name: 'ProjectError',
      message: `The provider of ${intentId} does not tell of payments. The preimage of its invoice is honoured at any time, without this command.`,
    })
  })

  test('honouring a payment lets the provider be asked for a day, and no longer', async (t) => {
    const world = await aGate(t)
    const { intent_id: intentId } = await world.quoted()
    world.clock.advance(30 * DAY)
    const now = world.clock.now()
    assert.equal(await world.projects.honour(intentId), 'provider asked again')
    const { honoured_until, next_verify_at } = await world.intentRow(intentId)
    assert.ok(honoured_until >= now + DAY && honoured_until <= world.clock.now() + DAY)
    assert.equal(next_verify_at, 0)
  })

  test('honouring a payment that is proven or deleted meanwhile says to try again', async (t) => {
    const { db, clock, quoted } = await aGate(t)
    const { intent_id: intentId } = await quoted()
    const gone = { text: `update gate_intent set state = 'authorized'`, values: [] }
    const raced = createProjects({
      db: meanwhile(db, gone),
      clock,
      provider: null as never,
      allowed: null as never,
    })
    await assert.rejects(raced.honour(intentId), {
      name: 'ProjectError',
      message: `${intentId} has changed meanwhile, and nothing was done. Try again.`,
    })
  })

  test('honouring a payment takes it off the list, which says when it failed', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    for (let i = 0; i < 3; i++) {
      await givesBack(world, intent, (await pay(world, intent)).receipt_id)
    }
    const [owed, ...more] = await world.projects.unhonoured()
    const now = world.clock.now()
    assert.ok(owed && owed.noticedAt > now - MINUTE && owed.noticedAt <= now)
    assert.deepEqual(more, [])
    assert.deepEqual(owed, {
      intentId: intent.intent_id,
      projectId: world.projectId,
      paymentHash: intent.payment_hash,
      amountSats: 50,
      noticedAt: owed.noticedAt,
    })
    for (let i = 0; i < 2; i++) {
      assert.equal(await world.projects.honour(intent.intent_id), 'fresh receipt')
      assert.deepEqual(await world.projects.unhonoured(), [])
    }
  })
})
