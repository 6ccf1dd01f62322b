/** Who runs the service and on which terms, as far as its operator says so. */
export type OperatorFacts = {
  /** https URLs. */
  termsUrl: string | null
  privacyUrl: string | null
  /** An https URL or an e-mail address. */
  contact: string | null
}

export const isEmail = (contact: string): boolean => !contact.startsWith('https:')

/** A link for each that is set: its name, and where it leads. */
export function operatorLinks({
  termsUrl,
  privacyUrl,
  contact,
}: OperatorFacts): [name: string, href: string][] {
  const links: [string, string | null][] = [
    ['Terms', termsUrl],
    ['Privacy', privacyUrl],
    ['Contact', contact !== null && isEmail(contact) ? `mailto:${contact}` : contact],
  ]
  return links.filter((link): link is [string, string] => link[1] !== null)
}
