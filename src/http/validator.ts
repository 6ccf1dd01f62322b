/** Validators of schemas. Compiling one takes longer than a request, so a process compiles each schema once. */
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { oncePer } from '../lib/once-per.ts'

/** Its validator, compiled when it is first asked for. */
export const validatorOf = oncePer((schema: TSchema) => Compile(schema))
