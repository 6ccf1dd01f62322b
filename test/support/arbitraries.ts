/** Inputs for the fuzz tests of parsers: noise, noise in the grammar's letters, and nearly valid texts. */
import fc from 'fast-check'

/** Texts that often look like authentication fields, so that they reach the deep branches. */
const fieldText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'aB=,"\\ \t/+_-.:;*\xe9') }),
  fc
    .array(
      fc.constantFrom(
        ...['Payment', 'L402', 'LSAT', 'Basic', 'id', 'realm', 'token', '"x"', '"', '"\\""'],
        ...['=', ',', ' ', '\t', 'e30', 'AgJC==', ':', '00'.repeat(32), 'lightning/charge', '*/*'],
        ...[';q=0', ';q=0.5', ';', 'q'],
      ),
      { maxLength: 24 },
    )
    .map((parts) => parts.join('')),
)

export const fieldLines = fc.array(fieldText, { maxLength: 4 })

/** `good` with a few characters replaced, inserted, dropped or doubled. */
export function mutated(good: string): fc.Arbitrary<string> {
  const edit = fc.record({
    at: fc.nat({ max: good.length }),
    drop: fc.nat({ max: 3 }),
    insert: fc.oneof(
      fc.constant(''),
      fc.string({ unit: 'binary', maxLength: 3 }),
      fc.constantFrom(...'"\\,= :/+-_A0'),
    ),
  })
  return fc.array(edit, { minLength: 1, maxLength: 3 }).map((edits) => {
    let text = good
    for (const { at, drop, insert } of edits) {
      text = text.slice(0, at) + insert + text.slice(at + drop)
    }
    return text
  })
}

/** `good` with a few bytes changed, cut out, or put in. */
export function mutatedBytes(good: Uint8Array): fc.Arbitrary<Uint8Array> {
  const edit = fc.record({
    at: fc.nat({ max: good.length }),
    drop: fc.nat({ max: 2 }),
    insert: fc.uint8Array({ maxLength: 2 }),
  })
  return fc.array(edit, { minLength: 1, maxLength: 3 }).map((edits) => {
    let bytes = [...good]
    for (const { at, drop, insert } of edits) {
      bytes = [...bytes.slice(0, at), ...insert, ...bytes.slice(at + drop)]
    }
    return Uint8Array.from(bytes)
  })
}
