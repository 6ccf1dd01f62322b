/** What Fastify makes of the schemas of routes. Without these it loads two libraries of its own at each start. */
import type { FastifyServerOptions } from 'fastify'
import { compileSerializer } from './serialization.ts'
import { compileValidator } from './validation.ts'

/** Its types are those of its own libraries. */
export const COMPILERS = {
  compilersFactory: {
    buildValidator: () => compileValidator,
    buildSerializer: () => compileSerializer,
  },
} as unknown as NonNullable<FastifyServerOptions['schemaController']>
