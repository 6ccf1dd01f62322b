/** Projects and their priced routes in the store. */
import type { Db, Statement } from '../db/db.ts'
import { firstRow } from './first-row.ts'
import type { RouteSpec } from './route-spec.ts'
import type { VerificationKind } from './schema.ts'

export type ProjectRow = {
  project_id: string
  key_hash: Uint8Array
  address: string
  verification: VerificationKind
  credits: number
  created_at: number
  suspended_at: number | null
}

export type RouteRow = {
  project_id: string
  route_id: string
  method: string
  pattern: string
  price_sats: number
}

/** A billion: more than any project needs, and small enough for exact sums. */
export const MAX_CREDITS = 1_000_000_000

export const insertProject = (project: {
  projectId: string
  keyHash: Uint8Array
  address: string
  verification: VerificationKind
  credits: number
  createdAt: number
}): Statement => ({
  text: `insert into gate_project (project_id, key_hash, address, verification, credits, created_at)
    values ($1, $2, $3, $4, $5, $6)`,
  values: [
    project.projectId,
    project.keyHash,
    project.address,
    project.verification,
    project.credits,
    project.createdAt,
  ],
  expect: 1,
})

/** Adds a route. Refused if its id is taken or the project does not exist. */
export const insertRoute = (projectId: string, route: RouteSpec): Statement => ({
  text: `insert into gate_route (project_id, route_id, method, pattern, price_sats)
    select project_id, $2, $3, $4, $5 from gate_project where project_id = $1
    on conflict (project_id, route_id) do nothing`,
  values: [projectId, route.routeId, route.method, route.pattern, route.priceSats],
  expect: 1,
})

export const deleteRoute = (projectId: string, routeId: string): Statement => ({
  text: 'delete from gate_route where project_id = $1 and route_id = $2',
  values: [projectId, routeId],
  expect: 1,
})

export const suspendProject = (projectId: string, now: number): Statement => ({
  text: `update gate_project set suspended_at = $2
    where project_id = $1 and suspended_at is null`,
  values: [projectId, now],
  expect: 1,
})

export const resumeProject = (projectId: string): Statement => ({
  text: `update gate_project set suspended_at = null
    where project_id = $1 and suspended_at is not null`,
  values: [projectId],
  expect: 1,
})

export const replaceKey = (projectId: string, keyHash: Uint8Array): Statement => ({
  text: 'update gate_project set key_hash = $2 where project_id = $1',
  values: [projectId, keyHash],
  expect: 1,
})

export const grantCredits = (projectId: string, credits: number): Statement => ({
  text: `update gate_project set credits = credits + $2
    where project_id = $1 and credits + $2 <= $3 returning credits`,
  values: [projectId, credits, MAX_CREDITS],
  expect: 1,
})

export function createProjectStore(db: Db) {
  return {
    project: (projectId: string) =>
      firstRow<ProjectRow>(db, 'select * from gate_project where project_id = $1', projectId),

    projectOfKey: (keyHash: Uint8Array) =>
      firstRow<ProjectRow>(db, 'select * from gate_project where key_hash = $1', keyHash),

    projects: () => db.read<ProjectRow>('select * from gate_project order by created_at'),

    route: (projectId: string, routeId: string) =>
      firstRow<RouteRow>(
        db,
        'select * from gate_route where project_id = $1 and route_id = $2',
        projectId,
        routeId,
      ),

    routes: (projectId: string) =>
      db.read<RouteRow>(
        'select * from gate_route where project_id = $1 order by route_id',
        projectId,
      ),
  }
}
