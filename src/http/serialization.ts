/** Serializes answers by the schemas that also make the OpenAPI document. */
import serializerOf from 'fast-json-stringify'
import type { FastifySerializerCompiler } from 'fastify'
import type { TSchema } from 'typebox'

/**
 * Compiles each schema when its first answer is sent. To compile all of them was a third of what a warm start
 * costs, and most servers and tests send only some of these answers.
 */
export const compileSerializer: FastifySerializerCompiler<TSchema> = ({ schema }) => {
  let serialize: ((answer: unknown) => string) | undefined
  return (answer) => {
    serialize ??= serializerOf(schema)
    return serialize(answer)
  }
}
