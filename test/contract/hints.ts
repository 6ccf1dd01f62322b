/** What every implementation of the hints promises, on one instance. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hints } from '../../src/db/hints.ts'
import type { After } from '../support/folder.ts'

export function hintsContract(name: string, open: (t: After) => Promise<Hints>): void {
  test(`${name}: a listener of a topic hears its hints at once, and none of another`, async (t) => {
    const hints = await open(t)
    const heard: string[] = []
    hints.listen('catch_a', () => heard.push('first'))
    hints.listen('catch_a', () => heard.push('second'))
    hints.listen('catch_b', () => heard.push('other'))
    hints.notify('catch_a')
    assert.deepEqual(heard, ['first', 'second'])
    hints.notify('catch_c')
    assert.equal(heard.length, 2)
  })

  test(`${name}: a listener that has stopped hears nothing more, however often it stops`, async (t) => {
    const hints = await open(t)
    let heard = 0
    const listener = (): void => void heard++
    const stop = hints.listen('catch_a', listener)
    hints.listen('catch_a', listener)
    stop?.()
    stop?.()
    hints.notify('catch_a')
    assert.equal(heard, 1)
  })

  test(`${name}: 64 listeners may listen to one topic, and another when one of them has stopped`, async (t) => {
    const hints = await open(t)
    const listen = () => hints.listen('pulse_x', () => undefined)
    const stops = Array.from({ length: 64 }, listen)
    assert.ok(stops.every(Boolean))
    assert.equal(listen(), null)
    assert.ok(hints.listen('pulse_y', () => undefined))
    stops[7]?.()
    assert.ok(listen())
  })
}
