/**
 * nginx and Caddy from Debian in front of the service, with the configurations of deploy/: only
 * ports, the name of the site and the files of its certificate are others.
 */
import { execFile, execFileSync } from 'node:child_process'
import { lookup } from 'node:dns'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import type { LookupFunction } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { Agent } from 'undici'
import { type After, temporaryFolder } from '../support/folder.ts'
import { createProcesses, type Processes } from '../support/nodes/processes.ts'
import { until } from '../support/until.ts'

export type ProxyName = 'nginx' | 'caddy'

/** NGINX and CADDY name other builds than Debian's. */
const BINARIES: Record<ProxyName, string> = {
  nginx: process.env.NGINX ?? 'nginx',
  caddy: process.env.CADDY ?? 'caddy',
}

export type Front = Awaited<ReturnType<typeof startFront>>

type Files = { folder: string; port: number; servicePort: number; certificate: string; key: string }

const SITE = 'localhost'

/** Why this proxy cannot run here, or false. */
export function missingProxy(name: ProxyName): string | false {
  try {
    execFileSync(BINARIES[name], [name === 'nginx' ? '-v' : 'version'], { stdio: 'ignore' })
    return false
  } catch {
    return `${name} is missing: install Debian's package with \`apt-get install ${name}\``
  }
}

/** Starts the proxy, which ends with the test. */
export async function startFront(
  t: After,
  name: ProxyName,
  ports: { port: number; servicePort: number },
) {
  const folder = await temporaryFolder(t)
  const processes = createProcesses(join(folder, 'processes'))
  t.after(processes.close)
  const files = { ...ports, folder, ...makeCertificate(folder) }
  const command = (name === 'nginx' ? nginx : caddy)(files, copied(name))
  /** What the proxy's own check of its configuration says; it throws if that is wrong. */
  const check = async (): Promise<string> => {
    const { stdout, stderr } = await promisify(execFile)(BINARIES[name], command.check)
    return stdout + stderr
  }
  await check()
  await run(processes, { name, command: command.run, folder, port: ports.port })
  const ca = readFileSync(files.certificate, 'utf8')
  const agents: Agent[] = []
  t.after(() => Promise.all(agents.map((agent) => agent.destroy())))

  return {
    url: `https://${SITE}:${ports.port}`,
    check,
    /** A client that trusts the certificate, on HTTP/1.1 or HTTP/2, from this address of loopback. */
    client({ isHttp2 = false, from = '127.0.0.1' } = {}) {
      const agent = new Agent({
        allowH2: isHttp2,
        // The service answers a wait after 30 seconds, and writes to a stream every 15.
        connect: { ca, lookup: onIpv4 },
        localAddress: from,
      })
      agents.push(agent)
      return agent
    },
    /** The protocol that the proxy chooses of these. */
    chosen: (protocols: string[]) =>
      new Promise<string | false | null>((resolve, reject) => {
        const socket = connectTls({
          host: '127.0.0.1',
          port: ports.port,
          servername: SITE,
          ca,
          ALPNProtocols: protocols,
        })
        socket.once('error', reject)
        socket.once('secureConnect', () => {
          resolve(socket.alpnProtocol)
          socket.destroy()
        })
      }),
    /** Everything that the proxy has written to a log. */
    async logs() {
      const names = await Array.fromAsync(glob('**/*.log', { cwd: folder }))
      return (await Promise.all(names.map((one) => readFile(join(folder, one), 'utf8')))).join('\n')
    },
  }
}

/** The configuration that an operator copies. */
const copied = (name: ProxyName): string =>
  readFileSync(
    new URL(`../../deploy/${name === 'caddy' ? 'Caddyfile' : 'nginx.conf'}`, import.meta.url),
    'utf8',
  )

/** Replaces what must be there exactly once, so that a change of the page is noticed here. */
function replaced(text: string, pairs: [from: string | RegExp, to: string][]): string {
  return pairs.reduce((before, [from, to]) => {
    const parts = before.split(from)
    if (parts.length !== 2) throw new Error(`${from} stands ${parts.length - 1} times in the page`)
    return parts.join(to)
  }, text)
}

type Command = { check: string[]; run: string[] }

function nginx({ folder, port, servicePort, certificate, key }: Files, block: string): Command {
  const site = replaced(block, [
    ['127.0.0.1:8402', `127.0.0.1:${servicePort}`],
    [/(?<=^ +listen )443(?= )/m, `127.0.0.1:${port}`],
    [/(?<=server_name +)mayfly\.example/, SITE],
    [/(?<=ssl_certificate +)\S+(?=;)/, certificate],
    [/(?<=ssl_certificate_key +)\S+(?=;)/, key],
    ['/var/log/nginx/', `${folder}/site-`],
  ])
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = join(folder, 'nginx.conf')
  // As Debian's own nginx.conf, which logs every request unless a site says otherwise.
  writeFileSync(
    config,
    `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 768; }
http {
  access_log ${folder}/access.log;
  ${places.map((place) => `${place}_temp_path ${folder}/${place};`).join('\n  ')}
  ${site}
}
`,
  )
  return { check: ['-t', '-c', config], run: ['-c', config] }
}

function caddy({ folder, port, servicePort, certificate, key }: Files, block: string): Command {
  const site = replaced(block, [
    ['127.0.0.1:8402', `127.0.0.1:${servicePort}`],
    ['mayfly.example {\n', `https://${SITE}:${port} {\n\ttls ${certificate} ${key}\n`],
  ])
  const config = join(folder, 'Caddyfile')
  // A page may begin with the global options, which are one block.
  const own = `admin off\n\tauto_https disable_redirects\n\tstorage file_system ${folder}/storage\n`
  writeFileSync(
    config,
    site.startsWith('{\n') ? `{\n\t${own}${site.slice(2)}` : `{\n\t${own}}\n${site}`,
  )
  const options = ['--config', config, '--adapter', 'caddyfile']
  return { check: ['validate', ...options], run: ['run', ...options] }
}

function makeCertificate(folder: string): { certificate: string; key: string } {
  const [certificate, key] = [join(folder, 'fullchain.pem'), join(folder, 'privkey.pem')]
  mkdirSync(folder, { recursive: true })
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-keyout', key, '-out', certificate, '-days', '2', '-subj', `/CN=${SITE}`],
      ...['-addext', `subjectAltName=DNS:${SITE}`],
    ],
    { stdio: 'ignore' },
  )
  return { certificate, key }
}

async function run(
  processes: Processes,
  ask: { name: ProxyName; command: string[]; folder: string; port: number },
): Promise<void> {
  const running = processes.launch(BINARIES[ask.name], ask.command, join(ask.folder, 'output.log'))
  await until(`${ask.name} to listen`, async () => {
    running.mustRun()
    return await new Promise<boolean>((resolve) => {
      const socket = connectTls({
        host: '127.0.0.1',
        port: ask.port,
        servername: SITE,
        rejectUnauthorized: false,
      })
      socket.once('error', () => resolve(false))
      socket.once('secureConnect', () => {
        socket.destroy()
        resolve(true)
      })
    })
  })
}

// A connection from an address of IPv4 cannot go to ::1.
const onIpv4: LookupFunction = (hostname, options, found) =>
  lookup(hostname, { ...options, family: 4 }, found)
