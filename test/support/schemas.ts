/** Whether the results of tools are what their schemas say. */
import assert from 'node:assert/strict'
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'

export type Checked = { isError?: boolean; structuredContent?: unknown; text: string }

/** @returns checks a result of a tool, and says which were answered and which were refused. */
export function resultChecks(tools: { name: string; outputSchema?: object }[]) {
  const ajv = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true })
  addFormats.default(ajv)
  const validators = new Map<string, ValidateFunction>(
    tools.map(({ name, outputSchema }) => {
      assert.ok(outputSchema, name)
      return [name, ajv.compile(outputSchema)]
    }),
  )
  const answered = new Set<string>()
  const refused = new Set<string>()
  return {
    answered,
    refused,
    check(name: string, { isError, structuredContent, text }: Checked): void {
      if (isError) {
        refused.add(name)
        assert.equal(structuredContent, undefined, `${name} is refused with a value`)
        assert.match(text, /^\S.{10,}/s, `${name} is refused with a reason`)
        return
      }
      const validate = validators.get(name)
      assert.ok(validate, name)
      assert.ok(validate(structuredContent), `${name}: ${ajv.errorsText(validate.errors)}`)
      assert.deepEqual(JSON.parse(text), structuredContent, `${name} says the same in its content`)
      answered.add(name)
    },
  }
}
