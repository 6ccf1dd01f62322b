/** Stands for `src/http/app.ts`: the same server, which is asked within this process and listens nowhere. */
import { type App, type AppOptions, createApp as create } from '../../../../src/http/app.ts'
import { thisProcess } from '../world.ts'

export type { App, AppOptions }

export async function createApp(options: AppOptions): Promise<App> {
  const process = thisProcess()
  const app = await create(options)
  app.listen = (async () => {
    await app.ready()
    process.app = app
    return 'http://127.0.0.1:8402'
  }) as typeof app.listen
  app.server.address = () => ({ address: '127.0.0.1', family: 'IPv4', port: 8402 })
  return app
}
