/** Requests of the service to itself would pass its own limits as those of a stranger, and could go in circles. */

/** Whether a URL leads to the service with this address. A public name is ours on every port. */
export function leadsTo(publicUrl: () => string): (url: URL) => boolean {
  return (url) => {
    const own = URL.parse(publicUrl())
    if (own === null) return false
    return url.host === own.host || (url.port === '' && url.hostname === own.hostname)
  }
}
