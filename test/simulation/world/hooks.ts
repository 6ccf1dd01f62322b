/**
 * What a simulation replaces, and in which files of the service. Everything else is the program as it is. Must
 * be imported before any file of the service.
 */
import { registerHooks } from 'node:module'
import type { Plant } from '../plants.ts'
import { replaceGlobals } from './globals.ts'
import { replaceWebCrypto } from './web-crypto.ts'

const SOURCE = new URL('../../../src/', import.meta.url).href
const at = (file: string): string => new URL(`replaced/${file}`, import.meta.url).href

/** By the specifier, in any file of the service. */
const EVERYWHERE: Record<string, string> = {
  'node:timers/promises': at('timers-promises.ts'),
  'node:crypto': at('crypto.ts'),
  undici: at('undici.ts'),
}

/** By the specifier in the wiring, `src/service/serve.ts`. */
const IN_WIRING: Record<string, string> = {
  '../db/open.ts': at('open-store.ts'),
  '../lightning/open.ts': at('open-lightning.ts'),
  './instances.ts': at('instances.ts'),
  '../http/app.ts': at('app.ts'),
  '../http/pages/pages.ts': at('pages.ts'),
}

/** By the specifier in what the operator's commands work with. */
const IN_COMMANDS: Record<string, string> = {
  '../../lightning/open.ts': at('open-lightning.ts'),
}

/** By the specifier where strangers' names are resolved. */
const IN_CONNECTING: Record<string, string> = { 'node:dns': at('dns.ts') }

const OF_FILE: Record<string, Record<string, string>> = {
  'alerts/connecting.ts': IN_CONNECTING,
  'service/serve.ts': IN_WIRING,
  'cli/operator/order-work.ts': IN_COMMANDS,
}

/** @param plant a mistake to put into the source as it is loaded. */
export function installHooks(plant: Pick<Plant, 'file' | 'text' | 'becomes'> | null): void {
  registerHooks({
    resolve(specifier, context, next) {
      const parent = context.parentURL ?? ''
      if (parent.startsWith(SOURCE)) {
        const own = OF_FILE[parent.slice(SOURCE.length)] ?? {}
        const instead = EVERYWHERE[specifier] ?? own[specifier]
        if (instead) return { url: instead, shortCircuit: true }
      }
      return next(specifier, context)
    },
    load(url, context, next) {
      const loaded = next(url, context)
      if (!plant || url !== SOURCE + plant.file) return loaded
      const source = String(loaded.source)
      if (source.split(plant.text).length !== 2) {
        throw new Error(`${plant.file} must have this text exactly once: ${plant.text}`)
      }
      return { ...loaded, source: source.replace(plant.text, () => plant.becomes) }
    },
  })
  replaceGlobals()
  replaceWebCrypto()
}
