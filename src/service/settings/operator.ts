/** The settings by which the operator says who runs the service. An error's message completes "<name> must be …". */
import { isLoopback } from '../../protocol/ip-address.ts'

/** Longer ones would fill the pages and documents that show them. */
const MAX_LENGTH = 500
const EMAIL = /^[A-Za-z0-9.!#$%*+/=?^_{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,63}$/

/**
 * An https URL, in its plain spelling.
 * @param others the other values that the setting accepts, for the sentence.
 */
export function webUrl(value: string, others = ''): string {
  const url = value.length <= MAX_LENGTH ? URL.parse(value) : null
  if (url?.protocol !== 'https:' || url.username + url.password !== '') {
    throw new Error(`an https URL without credentials${others}`)
  }
  return url.href
}

export type RateSource = { url: string; currency: string }

/** A URL, with the currency after `#`. A source on this machine needs no TLS. */
export function rateSource(value: string): RateSource {
  const url = value.length <= MAX_LENGTH ? URL.parse(value) : null
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  const currency = url?.hash.slice(1) ?? ''
  if (!isSafe || url.username + url.password !== '' || !/^[A-Z]{3}$/.test(currency)) {
    throw new Error('an https URL without credentials that ends with a currency, such as `#EUR`')
  }
  url.hash = ''
  return { url: url.href, currency }
}

/** An https URL, or an e-mail address. */
export function contact(value: string): string {
  if (value.length <= MAX_LENGTH && EMAIL.test(value)) return value
  return webUrl(value, ', or an e-mail address')
}
