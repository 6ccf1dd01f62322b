/** The operator of GATE's projects: `mayfly gate …`, on the store of the running processes. */
import { createLnurlClient } from '../../../src/gate/lnurl-client.ts'
import { createProjects, ProjectError, type Projects } from '../../../src/gate/projects.ts'
import { createLnurlProvider } from '../../../src/gate/provider.ts'
import type { Process } from '../world/world.ts'
import { openPayee, type Payee } from './payee.ts'
import type { Project, Route, Town } from './town.ts'

const ROUTES: readonly Route[] = [
  { routeId: 'render', method: 'POST', pattern: '/render/*', priceSats: 50 },
  { routeId: 'ping', method: 'GET', pattern: '/ping', priceSats: 1 },
]
/** Few, so that they run out now and then. */
const CREDITS = 3
const RETRY_MS = 2_000

export type Operator = {
  addProject(): Promise<Project>
  /** What an operator does now and then, once. */
  interfere(project: Project): Promise<void>
  /** Leaves a project so that it can sell, and honours what was not honoured. */
  settle(project: Project): Promise<void>
}

export function createOperator(town: Town): Operator {
  const { world, ledger } = town.run
  const { scheduler, disk } = world
  const { random } = scheduler
  const self: Process = { name: 'operator', isDead: false, app: null, onDeath: new Set() }
  const clock = { now: scheduler.wallNow, monotonic: scheduler.elapsed }
  const allowed = new Set<string>()
  const client = createLnurlClient({ allowed, clock })
  const provider = createLnurlProvider({ client, network: 'regtest', clock })
  const projects = createProjects({ db: disk.connect(self), provider, allowed, clock })
  const payees: Payee[] = []

  /** A command of the operator. @returns null if it failed, and may have been done nevertheless. */
  async function command<T>(
    what: string,
    work: (projects: Projects) => Promise<T>,
  ): Promise<T | null> {
    try {
      const done = await scheduler.as(self, () => work(projects))
      ledger.note(`operator ${what}`)
      return done
    } catch (error) {
      ledger.note(`operator ${what}: ${String(error)}`)
      return null
    }
  }

  async function until<T>(what: string, work: (projects: Projects) => Promise<T>): Promise<T> {
    for (;;) {
      const done = await command(what, work)
      if (done !== null) return done
      await scheduler.sleep(RETRY_MS)
    }
  }

  /** All credits that a project was given. */
  const grantedTo = (projectId: string): number => {
    const [row] = disk.read(
      `select credits + (select count(*) from gate_receipt where project_id = $1) as granted
       from gate_project where project_id = $1`,
      projectId,
    )
    return Number(row?.granted)
  }

  async function grant(project: Project): Promise<void> {
    const done = await command('grants credits', (all) => all.grant(project.projectId, CREDITS))
    if (done !== null) project.granted += CREDITS
    // An operator whose command has failed looks whether it was done.
    else if (grantedTo(project.projectId) === project.granted + CREDITS) project.granted += CREDITS
  }

  async function rotate(project: Project): Promise<void> {
    const before = project.capability
    const made = await command('rotates a key', (all) => all.rotateKey(project.projectId))
    // A key that was made and not shown is lost: only another one helps.
    const capability =
      made ?? (await until('rotates a key', (all) => all.rotateKey(project.projectId)))
    town.ended.set(before, scheduler.elapsed())
    // Somebody has to carry it to the project's server.
    await scheduler.sleep(random.next() * 3_000)
    project.capability = capability
  }

  async function suspend(project: Project): Promise<void> {
    await command('suspends', (all) => all.suspend(project.projectId))
    await scheduler.sleep(random.next() * 5_000)
    await resume(project)
  }

  const resume = ({ projectId }: Project): Promise<boolean> =>
    until('resumes', (all) => doneBefore(all.resume(projectId)))

  /** Another price: open intents keep theirs. */
  async function reprice(project: Project): Promise<void> {
    const { projectId } = project
    const [{ routeId, ...route }] = ROUTES as [Route]
    const priceSats = random.pick([50, 60, 70])
    pricesOf(projectId, routeId).add(priceSats)
    await until('removes a route', (all) => doneBefore(all.removeRoute(projectId, routeId)))
    await until('adds a route', (all) =>
      doneBefore(all.addRoute(projectId, { routeId, ...route, priceSats })),
    )
  }

  function pricesOf(projectId: string, routeId: string): Set<number> {
    const of = `${projectId} ${routeId}`
    const known = town.prices.get(of) ?? new Set()
    town.prices.set(of, known)
    return known
  }

  async function honour(): Promise<void> {
    for (const { intentId } of (await command('lists payments', (all) => all.unhonoured())) ?? []) {
      const asked = town.givenBack.get(intentId) ?? new Set()
      town.givenBack.set(intentId, asked.add(`honoured ${asked.size}`))
      await command('honours', (all) => all.honour(intentId))
    }
  }

  return {
    async addProject() {
      // Two projects may have one address.
      const [first] = payees
      const payee =
        first && random.chance(0.3)
          ? first
          : openPayee(`pay${payees.length}.example.com`, town.invoices)
      payees.push(payee)
      const { projectId, capability } = await until('adds a project', (all) =>
        all.add({ address: payee.address, routes: [...ROUTES], credits: CREDITS }),
      )
      for (const { routeId, priceSats } of ROUTES) pricesOf(projectId, routeId).add(priceSats)
      const project = { projectId, capability, payee, routes: ROUTES, granted: CREDITS }
      town.projects.push(project)
      return project
    },

    async interfere(project) {
      const draw = random.next()
      if (draw < 0.4) return grant(project)
      if (draw < 0.55) return rotate(project)
      if (draw < 0.7) return suspend(project)
      if (draw < 0.85) return reprice(project)
      return honour()
    },

    async settle(project) {
      await resume(project)
      await honour()
      for (let i = 0; i < 4; i++) await grant(project)
    },
  }
}

/** True if it is done now, or was done by a command whose answer was lost. */
async function doneBefore(doing: Promise<void>): Promise<boolean> {
  try {
    await doing
  } catch (error) {
    if (!(error instanceof ProjectError)) throw error
  }
  return true
}

/** The credits of each project, those included whose key its operator never saw. */
export function grantedCredits({ run, projects }: Town): Record<string, number> {
  const known = new Map(projects.map(({ projectId, granted }) => [projectId, granted]))
  const stored = run.world.disk.read('select project_id from gate_project')
  return Object.fromEntries(
    stored.map(({ project_id }) => [String(project_id), known.get(String(project_id)) ?? CREDITS]),
  )
}
