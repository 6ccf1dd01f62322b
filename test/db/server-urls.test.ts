import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeOf, serverUrls } from '../../src/db/server-urls.ts'

test('a URL of several servers is one URL for each, with user, database and parameters', () => {
  assert.deepEqual(serverUrls('postgres://m:p%40w@a:5432,b,[::1]:5433/db?sslmode=require&x=1,2'), [
    'postgres://m:p%40w@a:5432/db?sslmode=require&x=1,2',
    'postgres://m:p%40w@b/db?sslmode=require&x=1,2',
    'postgres://m:p%40w@[::1]:5433/db?sslmode=require&x=1,2',
  ])
})

test('a URL of one server, or of a socket, stays as it is', () => {
  for (const url of ['postgresql://a/db', 'postgres://m:a,b@a/db', 'postgres:///db?host=/run']) {
    assert.deepEqual(serverUrls(url), [url])
  }
})

test('the place of a database shows its servers and its name, and nothing else', () => {
  assert.deepEqual(placeOf('postgres://m:hunter2@a:1,b:2/my%20db?password=hunter2'), {
    servers: 'a:1, b:2',
    database: 'my db',
  })
})
