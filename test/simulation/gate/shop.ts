/**
 * A project's server with the middleware of `mayfly/gate`: it is visited over a network that loses answers, fails
 * now and then, is restarted, and remembers on its disk whom it has let in.
 */
import { createGate, type ReplayStore } from '../../../src/gate-middleware/middleware.ts'
import type { Owner } from '../world/scheduler.ts'
import { askGate } from './exchange.ts'
import { digestOf, type Project, type Town, type Wanted } from './town.ts'

export type Visited = { status: number; headers: Headers; text: string }

export type Shop = {
  /** An answer, or null if it was lost. */
  visit(who: string, wanted: Wanted, headers: Record<string, string>): Promise<Visited | null>
  /** The server dies, with everything that it is doing, and is there again. */
  restart(): void
}

const ORIGIN = 'https://api.example.org'
const VISITOR_PATIENCE_MS = 20_000

export function openShop(town: Town, project: Project): Shop {
  const { world, ledger, service } = town.run
  const { scheduler } = world
  const { random } = scheduler
  const failing = random.pick([0, 0.2, 0.6])
  const remembered = new Set<string>()

  const store: ReplayStore = {
    async add(key) {
      await scheduler.sleep(random.next() * 5)
      if (remembered.has(key)) return false
      remembered.add(key)
      return true
    },
    since: () => 0,
  }

  function boot(): { owner: Owner; answer(route: string, request: Request): Promise<Response> } {
    const owner: Owner = { isDead: false }
    const { projectId } = project
    const gate = createGate({
      url: 'http://127.0.0.1:8402',
      projectId,
      capability: project.capability,
      fetch: (input, init) => fetched(String(input), init),
      clock: { now: scheduler.wallNow, monotonic: scheduler.elapsed },
      store,
      onProblem: () => undefined,
    })
    const answer = (route: string, request: Request): Promise<Response> =>
      gate.fetch(route, (admitted, { intent, req }) => run(route, admitted, { intent, req }))(
        request,
      )
    return { owner, answer }
  }

  /** The middleware's way to the service. */
  async function fetched(url: string, init: RequestInit = {}): Promise<Response> {
    const answer = await askGate(town, 'a project', {
      project,
      method: (init.method ?? 'GET') as 'GET' | 'POST',
      target: url.slice('http://127.0.0.1:8402'.length),
      headers: init.headers as Record<string, string>,
      body: init.body as string | Uint8Array | undefined,
      from: '192.0.2.80',
    })
    if (answer === null) throw new TypeError('fetch failed')
    const headers = new Headers()
    for (const name of ['content-type', 'www-authenticate', 'retry-after', 'gate-receipt']) {
      for (const line of answer.lines(name)) headers.append(name, line)
    }
    const isEmpty = answer.status === 204
    return new Response(isEmpty ? null : answer.text, { status: answer.status, headers })
  }

  /** The handler, which works for whoever has paid. */
  async function run(
    route: string,
    request: Request,
    { intent, req }: { intent: string; req: string },
  ): Promise<Response> {
    const { pathname, search } = new URL(request.url)
    const body = new Uint8Array(await request.arrayBuffer())
    const of = { routeId: route, method: request.method, path: pathname + search, body }
    if (digestOf(project.projectId, of) !== req) {
      ledger.break('a receipt opens its own request', `${intent} let ${of.path} in`)
    }
    const runs = town.runs.get(intent) ?? { begun: 0, failed: 0 }
    town.runs.set(intent, runs)
    if (runs.begun > runs.failed) ledger.break('one payment, one run', `${intent} ran again`)
    runs.begun++
    await scheduler.sleep(random.next() * (random.chance(0.1) ? 4_000 : 50))
    if (!random.chance(failing)) return new Response('done')
    runs.failed++
    return new Response('failed', { status: 500 })
  }

  let server = boot()

  return {
    visit(who, { route, path, body }, headers) {
      return new Promise((resolve) => {
        const done = (visited: Visited | null): void => {
          const line = visited ? `${visited.status} ${visited.text.slice(0, 200)}` : 'lost'
          ledger.note(`${who} visits ${path}: ${line}`)
          resolve(visited)
        }
        const giveUp = scheduler.after(VISITOR_PATIENCE_MS, () => done(null))
        if (random.chance(service.losing)) return
        const { owner, answer } = server
        const isLost = random.chance(service.losing)
        const request = new Request(ORIGIN + path, {
          method: route.method,
          headers,
          ...(body === '' ? {} : { body }),
        })
        const arrive = async (): Promise<void> => {
          const response = await answer(route.routeId, request)
          const visited = {
            status: response.status,
            headers: response.headers,
            text: await response.text(),
          }
          if (isLost) return
          giveUp()
          scheduler.after(random.next() * 5, () => done(visited), null)
        }
        scheduler.after(random.next() * 5, () => void arrive(), owner)
      })
    },

    restart() {
      ledger.note(`the server of ${project.projectId} restarts`)
      server.owner.isDead = true
      server = boot()
    },
  }
}
