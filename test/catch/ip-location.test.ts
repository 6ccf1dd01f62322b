import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { COUNTRIES, continentOf, type Locate, openLocations } from '../../src/catch/ip-location.ts'
import { ConfigError } from '../../src/service/config.ts'
import { anInbox } from '../support/catch.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { type Mmdb, mmdb } from '../support/mmdb.ts'
import { startServer } from '../support/server.ts'

/** As GeoLite2 City has it. */
const BERLIN = {
  city: { geoname_id: 2950159, names: { de: 'Berlin', en: 'Berlin' } },
  continent: { code: 'EU', geoname_id: 6255148, names: { en: 'Europe' } },
  country: { geoname_id: 2921044, iso_code: 'DE', names: { en: 'Germany' } },
  location: { accuracy_radius: 20, latitude: 52.52437, longitude: 13.41053, time_zone: 'x' },
}
/** As ip-location-db has it. */
const SYDNEY = {
  country_code: 'AU',
  state1: 'New South Wales',
  city: 'Sydney',
  latitude: -33.86882,
  longitude: 151.20929,
}
const SOURCE = 'places 2026-06-05'

const PLACE = {
  berlin: {
    country: 'DE',
    city: 'Berlin',
    continent: 'EU',
    latitude: 52.52,
    longitude: 13.41,
    source: SOURCE,
  },
  sydney: {
    country: 'AU',
    city: 'Sydney',
    continent: 'OC',
    latitude: -33.87,
    longitude: 151.21,
    source: SOURCE,
  },
}

suite('a database', () => {
  test('a database is read in both layouts', async (t) => {
    const locate = await locations(t, {
      networks: { '203.0.113.0/24': BERLIN, '2001:db8:1::/48': SYDNEY },
    })
    assert.deepEqual(locate('203.0.113.7'), { ip: '203.0.113.7', ...PLACE.berlin })
    assert.deepEqual(locate('2001:db8:1::7'), { ip: '2001:db8:1::7', ...PLACE.sydney })
  })

  test('a database of IPv4 alone knows nothing of IPv6', async (t) => {
    const locate = await locations(t, {
      networks: { '203.0.113.0/24': BERLIN, '32.1.0.0/16': BERLIN },
      ipVersion: 4,
    })
    assert.deepEqual(locate('203.0.113.255'), { ip: '203.0.113.255', ...PLACE.berlin })
    assert.equal(locate('2001:db8::1'), null)
  })

  test('a database knows nothing outside of its networks, private addresses among it', async (t) => {
    const locate = await locations(t, {
      networks: { '203.0.113.0/24': BERLIN, '2001:db8::/32': SYDNEY },
    })
    const strangers = ['203.0.112.255', '203.0.114.0', '2001:db9::1', '0.0.0.0', '255.255.255.255']
    const own = ['127.0.0.1', '10.1.2.3', '192.168.1.1', '169.254.0.1', '::1', 'fe80::1', 'fd00::1']
    for (const ip of [...strangers, ...own]) assert.equal(locate(ip), null, ip)
  })

  test('a database is not asked about what is no address', async (t) => {
    const locate = await locations(t, { networks: { '203.0.113.0/24': BERLIN } })
    for (const ip of ['', 'localhost', '203.0.113', '203.0.113.256', 'fe80::1%eth0x y', '::g']) {
      assert.equal(locate(ip), null, ip)
    }
  })

  test('a database may leave out anything of a place; what it leaves out is null', async (t) => {
    const nothing = { country: null, city: null, continent: null, latitude: null, longitude: null }
    /** What the database has, and what of it is told; null if nothing is. */
    const cases: Record<string, [place: Mmdb['networks'][string], told: object | null]> = {
      'a country alone': [{ country: { iso_code: 'FR' } }, { country: 'FR', continent: 'EU' }],
      'a flat country alone': [{ country_code: 'JP' }, { country: 'JP', continent: 'AS' }],
      'a country that is none': [{ country_code: 'ZZ' }, { country: 'ZZ' }],
      'a city alone': [{ city: 'Atlantis' }, { city: 'Atlantis' }],
      'a city without an English name': [
        { city: { names: { de: 'Köln' } }, country_code: 'DE' },
        { country: 'DE', continent: 'EU' },
      ],
      'a point alone, at zero': [
        { latitude: 0, longitude: 0 },
        { latitude: 0, longitude: 0 },
      ],
      'a continent of its own': [
        { country_code: 'TR', continent: { code: 'EU' } },
        { country: 'TR', continent: 'EU' },
      ],
      'a flat continent': [
        { country_code: 'TR', continent_code: 'EU' },
        { country: 'TR', continent: 'EU' },
      ],
      'empty texts': [{ country_code: '', city: '', latitude: 1.5 }, { latitude: 1.5 }],
      'values of another type': [
        { country_code: 7, city: ['x'], latitude: '52', longitude: true, location: 'x' },
        null,
      ],
      'nothing of the place': [{ traits: { is_anonymous_proxy: true } }, null],
      'nothing at all': [{}, null],
    }
    for (const [note, [place, told]] of Object.entries(cases)) {
      const locate = await locations(t, { networks: { '203.0.113.0/24': place } })
      const wanted = told && { ip: '203.0.113.7', ...nothing, ...told, source: SOURCE }
      assert.deepEqual(locate('203.0.113.7'), wanted, note)
    }
  })

  test('a location is rounded to two decimals, away from what the database seems to know', async (t) => {
    const cases: [number, number][] = [
      [52.52437, 52.52],
      [-33.86882, -33.87],
      [0.004, 0],
      [179.999, 180],
    ]
    for (const [latitude, rounded] of cases) {
      const locate = await locations(t, {
        networks: { '203.0.113.0/24': { latitude, longitude: -latitude } },
      })
      const place = JSON.parse(JSON.stringify(locate('203.0.113.7')))
      assert.equal(place.latitude, rounded)
      assert.equal(place.longitude, 0 - rounded)
    }
  })

  test('two databases are asked in turn, and each says which it is', async (t) => {
    const folder = await temporaryFolder(t)
    const files = [join(folder, 'city-ipv4.mmdb'), join(folder, 'city-ipv6.mmdb')] as const
    await writeFile(files[0], mmdb({ networks: { '203.0.113.0/24': BERLIN }, ipVersion: 4 }))
    const buildEpoch = Date.UTC(2025, 11, 31, 23, 59) / 1000
    await writeFile(files[1], mmdb({ networks: { '2001:db8::/32': SYDNEY }, buildEpoch }))
    const locate = await openLocations(files, notDamaged)
    assert.equal(locate('203.0.113.7')?.source, 'city-ipv4 2026-06-05')
    assert.equal(locate('2001:db8::1')?.source, 'city-ipv6 2025-12-31')
    assert.equal(locate('198.51.100.1'), null)
  })

  test('a database that is damaged where an address leads is reported, and says nothing', async (t) => {
    const folder = await temporaryFolder(t)
    const file = join(folder, 'places.mmdb')
    const good = mmdb({ networks: { '203.0.113.0/24': BERLIN, '198.51.100.0/24': SYDNEY } })
    // An extended type that there is none of, where the first place begins.
    const start = good.indexOf('city') - 2
    good.fill(0, start, start + 2)
    await writeFile(file, good)
    const problems: string[] = []
    const locate = await openLocations([file], (_file, error) => problems.push(String(error)))
    assert.equal(locate('203.0.113.7'), null)
    assert.equal(locate('203.0.113.8'), null)
    assert.equal(problems.length, 1, 'once, not for every request')
    assert.equal(locate('198.51.100.1')?.city, 'Sydney')
    const server = await startServer(t, {
      MAYFLY_GEOIP_DATABASE: file,
      MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
    })
    const { publicId } = await anInbox(server)
    const headers = { 'x-forwarded-for': '203.0.113.7' }
    const sent = await fetch(`${server.url}/c/${publicId}`, { method: 'POST', headers })
    assert.equal(sent.status, 204)
    const lines = server.logged.map((line) => JSON.parse(line) as Record<string, unknown>)
    const told = lines.filter(({ event }) => event === 'geoip.damaged')
    assert.deepEqual(
      told.map(({ level, file }) => [level, file]),
      [[50, file]],
    )
  })
})

suite('a start with a database', () => {
  const bad: [note: string, content: Buffer | null][] = [
    ['is not there', null],
    ['is empty', Buffer.alloc(0)],
    ['is text', Buffer.from('hello, world')],
    ['is zeros', Buffer.alloc(10_000)],
    ['is cut in half', mmdb({ networks: { '203.0.113.0/24': BERLIN } }).subarray(0, 500)],
    ['is metadata without a tree', mmdb({ networks: { '203.0.113.0/24': BERLIN } }).subarray(-260)],
  ]
  for (const [note, content] of bad) {
    test(`a file that ${note} stops the service with a sentence`, async (t) => {
      const file = join(await temporaryFolder(t), 'places.mmdb')
      if (content) await writeFile(file, content)
      await assert.rejects(startServer(t, { MAYFLY_GEOIP_DATABASE: file }), (error) => {
        assert.ok(error instanceof ConfigError)
        assert.match(
          error.message,
          /^MAYFLY_GEOIP_DATABASE must name readable \.mmdb files \(.+\)\.$/,
        )
        return true
      })
    })
  }
})

test('an event says where its sender is, as far as that is known', async (t) => {
  const file = join(await temporaryFolder(t), 'places.mmdb')
  await writeFile(file, mmdb({ networks: { '203.0.113.0/24': BERLIN } }))
  const { url, mayfly, pay } = await startServer(t, {
    MAYFLY_GEOIP_DATABASE: file,
    MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
  })
  const inbox = await mayfly.buyCatch({ planId: 'spark', onInvoice: ({ bolt11 }) => pay(bolt11) })
  for (const ip of ['203.0.113.7', '127.0.0.1', '2001:db8::1']) {
    const headers = { 'x-forwarded-for': ip }
    assert.equal((await fetch(`${url}/c/${inbox.publicId}`, { headers })).status, 204)
  }
  const { events } = await mayfly.catch(inbox).page()
  assert.deepEqual(
    events.map(({ ipLocation }) => ipLocation),
    [null, null, { ip: '203.0.113.7', ...PLACE.berlin }],
  )
})

suite('the continents', () => {
  const known = Object.values(COUNTRIES).flatMap((countries) => countries.split(' '))

  test('the continents have each country once: those of ISO 3166-1, and Kosovo', () => {
    assert.equal(known.length, 249 + 1)
    assert.equal(new Set(known).size, known.length)
    const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })
    for (const code of known) assert.ok(names.of(code), code)
  })

  test('the continents are seven', () => {
    const continents = new Set(known.map((code) => continentOf(code)))
    assert.deepEqual([...continents].sort(), ['AF', 'AN', 'AS', 'EU', 'NA', 'OC', 'SA'])
  })

  test("a code that is not a country's has no continent", () => {
    for (const code of ['ZZ', 'EU', 'de', '', 'DEU', '__proto__', null]) {
      assert.equal(continentOf(code), null)
    }
  })
})

async function locations(t: After, database: Mmdb): Promise<Locate> {
  const file = join(await temporaryFolder(t), 'places.mmdb')
  await writeFile(file, mmdb(database))
  return openLocations([file], notDamaged)
}

const notDamaged = (_file: string, error: unknown) => {
  throw error
}
