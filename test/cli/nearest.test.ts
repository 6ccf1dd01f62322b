import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestOf } from '../../src/cli/nearest.ts'

test('a name with a letter missing, too many, wrong or swapped is recognized, and another name is not', () => {
  const names = ['hooks', 'backup', 'db', 'backups-2']
  for (const [typed, meant] of [
    ['hoks', 'hooks'],
    ['hookss', 'hooks'],
    ['hukks', null],
    ['hooaks', 'hooks'],
    ['ohoks', 'hooks'],
    ['bakcup', 'backup'],
    ['backups', 'backup'],
    ['bd', null],
    ['x', null],
    ['', null],
  ] as const) {
    assert.equal(nearestOf(typed, names), meant, typed)
  }
  assert.equal(nearestOf('hooks', []), null)
})
