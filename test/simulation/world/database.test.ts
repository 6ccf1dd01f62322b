import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { type Database, databaseFrom, emptyDatabase } from './database.ts'

const image = ((): Uint8Array => {
  const sqlite = new DatabaseSync(':memory:')
  sqlite.exec(`
    create table child (name text references parent(name));
    create table parent (number integer primary key autoincrement, name text unique);
    create trigger doubled after insert on child begin insert into child values (new.name); end;
    insert into parent (name) values ('a'), ('b');
    insert into child values ('a');
    delete from parent where name = 'b'`)
  return sqlite.serialize()
})()

const add = (to: Database, name: string): unknown =>
  to.execute('insert into parent (name) values ($1)', [name])
const names = (of: Database): unknown[] =>
  of.execute('select name from parent order by number', []).rows.map(({ name }) => name)

test("a simulated store is the image's at the start of each run, whatever the one before has changed", () => {
  const first = emptyDatabase(image)
  add(first, 'c')
  first.keepUndo()
  add(first, 'd')
  first.close()
  const second = emptyDatabase(image)
  assert.deepEqual(names(second), ['a'])
  add(second, 'e')
  const { rows } = second.execute('select number from parent where name = $1', ['e'])
  assert.deepEqual({ ...rows[0] }, { number: 3 })
  second.close()
})

test('a simulated loss of power undoes what was changed since the last flush', () => {
  const database = emptyDatabase(image)
  add(database, 'flushed')
  database.keepUndo()
  add(database, 'undone')
  database.keepUndo()
  database.undo()
  assert.deepEqual(names(database), ['a', 'flushed'])
  database.keepUndo()
  add(database, 'kept')
  database.forgetUndo()
  database.undo()
  assert.deepEqual(names(database), ['a', 'flushed', 'kept'])
  database.close()
})

test('a simulated unit that is refused has changed nothing', () => {
  const database = emptyDatabase(image)
  const refused = (): never => {
    add(database, 'c')
    throw new Error('refused')
  }
  assert.throws(() => database.undoing(refused), /refused/)
  assert.equal(
    database.undoing(() => names(database).join()),
    'a',
  )
  database.close()
})

test('a simulated backup has every row and number of the store, and is one of its own', () => {
  const database = emptyDatabase(image)
  add(database, 'c')
  const copy = database.copy()
  add(database, 'd')
  database.close()
  const restored = databaseFrom(copy)
  assert.deepEqual(names(restored), ['a', 'c'])
  assert.equal(restored.execute('select * from child', []).count, 2)
  assert.throws(() => restored.execute('insert into child values ($1)', ['nobody']), /FOREIGN KEY/)
  add(restored, 'd')
  const { rows } = restored.execute('select number from parent where name = $1', ['d'])
  assert.deepEqual({ ...rows[0] }, { number: 4 })
  restored.close()
  assert.deepEqual(names(emptyDatabase(image)), ['a'])
})
