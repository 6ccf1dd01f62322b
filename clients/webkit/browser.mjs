/** WebKitGTK on a virtual screen, by the few commands of WebDriver (W3C) that a visitor needs. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { freePort } from '../../test/support/ports.ts'
import { until } from '../../test/support/until.ts'

/** Long enough for a page on a busy machine. */
const PATIENCE = { withinMs: 60_000 }
const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'

/** Starts the screen and the driver. `visit` starts a browser for a new user. */
export async function startBrowsers(t) {
  const screen = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '1280x1000x24'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  t.after(() => ended(screen))
  const [number] = await once(screen.stdio[3], 'data')
  const port = await freePort()
  const env = { ...process.env, DISPLAY: `:${String(number).trim()}` }
  // Without a graphics card.
  env.WEBKIT_DISABLE_COMPOSITING_MODE = '1'
  const driver = spawn('WebKitWebDriver', [`--port=${port}`], { env, stdio: 'ignore' })
  t.after(() => ended(driver))

  async function command(method, path, body) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      signal: AbortSignal.timeout(PATIENCE.withinMs),
      ...(body && { body: JSON.stringify(body) }),
    })
    const { value } = await response.json()
    if (!response.ok) throw new Error(`${path}: ${value.error}: ${value.message}`)
    return value
  }
  await until('the driver', () => command('GET', '/status'))

  return {
    async visit(t, url) {
      const { sessionId, capabilities } = await command('POST', '/session', {
        capabilities: {
          alwaysMatch: {
            'webkitgtk:browserOptions': {
              binary: process.env.MINI_BROWSER,
              args: ['--automation', '--private'],
            },
          },
        },
      })
      const ask = (method, path, body) => command(method, `/session/${sessionId}${path}`, body)
      t.diagnostic(`WebKit ${capabilities.browserVersion}`)
      let isOpen = true
      /** The driver has one browser at a time. */
      const leave = async () => {
        if (!isOpen) return
        isOpen = false
        const picture = `${process.env.PICTURES}/${t.name.replace(/\W+/g, '-')}.png`
        writeFileSync(picture, Buffer.from(await ask('GET', '/screenshot'), 'base64'))
        await ask('DELETE', '')
      }
      t.after(leave)
      await ask('POST', '/url', { url })
      return { ...visitor(ask), leave }
    },
  }
}

function visitor(ask) {
  /** The first visible element that this XPath finds, once there is one. */
  const shown = (xpath) =>
    until(
      xpath,
      async () => {
        for (const found of await ask('POST', '/elements', { using: 'xpath', value: xpath })) {
          const path = `/element/${found[ELEMENT]}`
          if (await ask('GET', `${path}/displayed`)) return path
        }
        return null
      },
      PATIENCE,
    )
  return {
    run: (script) => ask('POST', '/execute/sync', { script, args: [] }),
    /** A button, a link or a fold whose text begins like this. */
    async click(text) {
      const xpath = `//*[self::a or self::button or self::summary][starts-with(normalize-space(.), "${text}")]`
      await ask('POST', `${await shown(xpath)}/click`, {})
    },
    /** A field by its label. */
    async fill(label, text) {
      const field = await shown(
        `//*[@id = //label[normalize-space(text()) = "${label}"]/@for] | //label[normalize-space(text()) = "${label}"]//*[self::input or self::textarea]`,
      )
      await ask('POST', `${field}/value`, { text })
    },
    /** Waits for an element with exactly this text, or one that contains it. */
    reads: (text) => shown(`//*[normalize-space(.) = "${text}"]`),
    mentions: (text) => shown(`//*[contains(normalize-space(.), "${text}")]`),
    text: async (xpath) => ask('GET', `${await shown(xpath)}/text`),
  }
}

async function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill()
  await gone
}
