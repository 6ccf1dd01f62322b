/** The settings that name hosts for outgoing requests. An error's message completes "<name> must be …". */

const NAME = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/

/** A proxy of the operator may have any name and address. */
export function proxyUrl(value: string): URL {
  const url = URL.parse(value)
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search + url.hash !== '') {
    throw new Error('an http URL without path or query')
  }
  return url
}

export function nameList(value: string): ReadonlySet<string> {
  const names = value.split(',').map((name) => name.trim().toLowerCase())
  if (value === '') return new Set()
  // Any other spelling would never match the name of a host, and block nothing.
  const isName = (name: string): boolean =>
    NAME.test(name) && URL.parse(`https://${name}/`)?.host === name
  if (!names.every(isName)) {
    throw new Error(
      'a comma-separated list of host names, without `*`: names below them count, too',
    )
  }
  return new Set(names)
}

export function hostList(value: string): ReadonlySet<string> {
  const hosts = value.split(',').map((host) => host.trim().toLowerCase())
  if (value === '') return new Set()
  for (const host of hosts) {
    const url = URL.parse(`http://${host}/`)
    // The port is required, because outgoing requests are compared including their port.
    if (url?.host !== host.replace(/:80$/, '') || !/:\d{1,5}$/.test(host)) {
      throw new Error('a comma-separated list of `host:port`')
    }
  }
  return new Set(hosts)
}
