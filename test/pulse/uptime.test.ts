import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { MAX_SPELLS } from '../../src/pulse/history.ts'
import { unit } from '../support/unit.ts'
import { aMonitor, DAY, SECOND, seconds, shortOf, T } from './history.ts'

suite('uptime', () => {
  const share = (value: number): number => Math.floor(value * 1e6) / 1e6

  test('uptime is the share of time without lateness since the first ping, and no period stands twice', async (t) => {
    const { pulse, at, page, pingsFrom, ping } = await aMonitor(t)
    at(50)
    await ping()
    at(3650)
    await pulse.scan()
    await ping()
    const { uptime } = await page()
    assert.deepEqual(uptime, {
      until: new Date(T + 3650 * SECOND).toISOString(),
      last24Hours: share(120 / 3600),
      last7Days: null,
      last30Days: null,
    })
    await pingsFrom(3650 + 60, 3650 + 600)
    const { last24Hours } = (await page()).uptime
    assert.equal(last24Hours, share((120 + 540) / (3600 + 540)))
  })

  test('uptime is told for each period that a monitor has lived through in part', async (t) => {
    const { pulse, at, page, ping, monitor } = await aMonitor(t)
    await ping()
    at(0)
    await pulse.change(await monitor(), { expectedIntervalSeconds: 604_800 })
    const day = DAY / SECOND
    // Late from 7 d and a minute on, until 8 d.
    at(7 * day + 60)
    await pulse.scan()
    at(8 * day)
    await ping()
    at(8.5 * day)
    const { last24Hours, last7Days, last30Days } = (await page()).uptime
    assert.equal(last24Hours, share(0.5))
    assert.equal(last7Days, share(1 - (day - 60) / (7 * day)))
    assert.equal(last30Days, share(1 - (day - 60) / (8.5 * day)))
    at(100 * day)
    await pulse.scan()
    assert.deepEqual(Object.values((await page()).uptime).slice(1), [0, 0, 0])
  })

  test('uptime leaves blind windows out of both the time and the lateness, in spells that ended and in one that lasts', async (t) => {
    const { pulse, at, page, ping, blind } = await aMonitor(t)
    await ping()
    at(400)
    await pulse.scan()
    assert.equal((await page()).uptime.last24Hours, share(120 / 400))
    // In the spell, across its beginning, and before it.
    blind([20, 40], [100, 130], [300, 380])
    const seen = 400 - 20 - 30 - 80
    const onTime = 120 - 20 - 20
    assert.equal((await page()).uptime.last24Hours, share(onTime / seen))
    await ping()
    assert.equal((await page()).uptime.last24Hours, share(onTime / seen))
    at(460)
    assert.equal((await page()).uptime.last24Hours, share((onTime + 60) / (seen + 60)))
    // Many more windows than one query looks up.
    blind(...Array.from({ length: 150 }, (_, i): [number, number] => [i * 2, i * 2 + 1]))
    const left = 460 - 150
    const late = 280 - 90
    assert.equal((await page()).uptime.last24Hours, share((left - late) / left))
  })

  test('uptime leaves out a suspension of the monitor, which the history tells', async (t) => {
    const { db, at, page, ping, publicId } = await aMonitor(t)
    await ping()
    at(100)
    await ping()
    await db.write(
      unit({
        text: 'update pulse_monitor set suspensions = $2 where public_id = $1',
        values: [publicId, `${T + 130 * SECOND}-${T + 930 * SECOND} `],
      }),
    )
    at(1200)
    const { uptime, entries } = await page()
    // An interval and a grace after it.
    assert.deepEqual(shortOf(entries).slice(0, 2), [
      ['late', 1050, null, 'silence'],
      ['blind', 130, 930],
    ])
    assert.equal(uptime.last24Hours, share(250 / 400))
  })

  test('uptime is null if the service was blind all the time', async (t) => {
    const { at, page, ping, blind } = await aMonitor(t)
    await ping()
    at(100)
    blind([-10, 100])
    assert.equal((await page()).uptime.last24Hours, null)
  })

  test('uptime counts a failed run as late until the next success', async (t) => {
    const { at, page, ping, signal } = await aMonitor(t)
    await ping()
    at(50)
    await signal(3)
    at(100)
    assert.equal((await page()).uptime.last24Hours, 0.5)
    await ping()
    assert.equal((await page()).uptime.last24Hours, 0.5)
  })

  test('uptime ends with the monitor, exhausted or expired, and so does its history', async (t) => {
    const exhausted = await aMonitor(t, { heartbeatLimit: 3 })
    await exhausted.ping()
    exhausted.at(50)
    await exhausted.ping()
    exhausted.at(100)
    await exhausted.signal(9)
    exhausted.at(5000)
    exhausted.blind([200, 300])
    const { uptime, entries } = await exhausted.page()
    assert.deepEqual([seconds(uptime.until), uptime.last24Hours], [100, 1])
    assert.deepEqual(shortOf(entries), [
      ['late', 100, 100, 'failure'],
      ['failed', 100, 9, null],
      ['ping', 50],
      ['ping', 0],
    ])
    const expired = await aMonitor(t, { durationSeconds: 1000 })
    await expired.ping()
    expired.at(5000)
    const ended = await expired.page()
    assert.deepEqual(
      [seconds(ended.uptime.until), ended.uptime.last24Hours],
      [1000, share(120 / 1000)],
    )
    assert.deepEqual(shortOf(ended.entries)[0], ['late', 120, 1000, 'silence'])
  })

  test('a share of time with more spells than are read is null, and one with fewer is told', async (t) => {
    const { db, publicId, at, page, ping } = await aMonitor(t, { heartbeatLimit: 1e6 })
    await ping()
    const day = DAY / SECOND
    const spells = async (from: number, count: number) => {
      for (let i = 0; i < count; i += 500) {
        await db.write(
          unit(
            ...Array.from({ length: 500 }, (_, n) => ({
              text: `insert into pulse_late_spell (public_id, began_at, cause, ended_at)
                values ($1, $2, 'silence', $3)`,
              values: [
                publicId,
                T + from * SECOND + (i + n) * 10,
                T + from * SECOND + (i + n) * 10 + 5,
              ],
            })),
          ),
        )
      }
    }
    await spells(1, MAX_SPELLS / 2)
    await spells(2.5 * day, MAX_SPELLS / 2 - 500)
    at(3 * day)
    await ping()
    at(3 * day + 60)
    assert.notEqual((await page()).uptime.last7Days, null)
    await spells(2.6 * day, 500)
    const { last24Hours, last7Days } = (await page()).uptime
    assert.equal(last7Days, null)
    assert.ok((last24Hours ?? 0) > 0)
  })
})
