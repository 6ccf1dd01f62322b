// Loaded before a command: kills its process before or after one of its writes of purchases and capabilities.
import { DatabaseSync } from 'node:sqlite'

const [when, at] = process.env.MAYFLY_TEST_KILL.split(' ')
delete process.env.MAYFLY_TEST_KILL
const { exec, prepare } = DatabaseSync.prototype
const written = new WeakSet()
let writes = 0

DatabaseSync.prototype.prepare = function (sql) {
  if (/^\s*(?:insert into|update|delete from) (?:purchase|capability)\b/.test(sql))
    written.add(this)
  return prepare.call(this, sql)
}
DatabaseSync.prototype.exec = function (sql) {
  const isIts = sql === 'commit' && written.has(this) && ++writes === Number(at)
  if (!isIts) return exec.call(this, sql)
  if (when === 'after') exec.call(this, sql)
  process.kill(process.pid, 'SIGKILL')
  // The signal may take a moment, in which nothing more is done.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}
