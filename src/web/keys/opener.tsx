/** Opens a key: from the purchase, this browser, a file or pasted text; and the line above what it opened. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { type AnyCapability, parseCapability } from '../../client/capability-file.ts'
import { MayflyError } from '../../client/errors.ts'
import { plainly } from '../lib/foreign.ts'
import { sentence } from '../lib/format.ts'
import {
  closeHere,
  downloadKey,
  forget,
  type Held,
  isGone,
  keep,
  kept,
  keptOf,
  keyText,
  MAX_NAME_CHARS,
  noteFailure,
  type OpenHere,
  openHere,
  rename,
  whatIsOpen,
} from '../lib/keys.ts'
import { BLOCKED } from '../lib/storage.ts'
import { THINGS } from '../lib/terms.ts'
import { Button, Menu } from '../ui/button.tsx'
import { Field, Form, Input } from '../ui/field.tsx'
import { mount, onConsent, openDialog, toast } from '../ui/overlay.tsx'
import { Head, Loaded, Notice, useGuard } from '../ui/show.tsx'
import { hasEnded, Things } from './things.tsx'

type Of<Product> = AnyCapability & { product: Product }
type Shown = OpenHere & { capability: { code?: string } }

/** The key that this page has open, and why it has none any more. A page opens the keys of one product. */
const open = signal<OpenHere | null>(null)
const problem = signal<string | null>(null)

/** The page of a receipt reads no secret, so it does not store the code that a file has besides. */
function show({ capability: { code: _, ...capability }, ...here }: Shown): void {
  const shown = { ...here, capability } as OpenHere
  openHere(shown)
  problem.value = null
  open.value = shown
}

/** Closes what is open in this tab. */
export function close(why: string | null = null): void {
  if (open.value) closeHere(open.value.capability.product)
  problem.value = why
  open.value = null
}

/** Closes it and says why, if the service has nothing for its key any more. Returns whether that is so. */
export function closedBy(error: unknown): boolean {
  if (!open.value || !isGone(error)) return false
  const { capability } = open.value
  noteFailure(capability.publicId, error)
  close(whyGone(capability, error))
  return true
}

/** The key is saved elsewhere now. */
function saved(): void {
  if (open.value) show({ ...open.value, isSaved: true })
}

/**
 * Opens what has taken the place of a key: it, with another token, or its replacement. It is saved where the one before
 * was, which may be closed by now: a purchase goes on when its dialog is closed.
 */
export function openInPlaceOf(publicId: string, held: Held): void {
  const isSaved = keptOf(publicId) !== undefined && keep(held)
  show({ ...held, isSaved })
}

type OpenerProps<Product, Known> = {
  product: Product
  /** The page's heading while nothing is open. */
  title: string
  /** What must be known before anything is shown. */
  load: (capability: Of<Product>) => Promise<Known>
  children: (loaded: Known) => ComponentChildren
}

/** The page of a product: what is open in this tab, or the ways to open something. */
export function mountOpener<Product extends AnyCapability['product'], Known>(
  props: OpenerProps<Product, Known>,
): void {
  open.value = whatIsOpen(props.product)
  mount(<Opener {...props} />)
}

function Opener<Product extends AnyCapability['product'], Known>({
  product,
  title,
  load,
  children,
}: OpenerProps<Product, Known>) {
  const { opens, get, about } = THINGS[product]
  // Closing the tab would lose a key that is not saved elsewhere.
  useGuard(() => open.value?.isSaved === false)

  /** Opens the text of a key, or says what is wrong with it. */
  function openText(text: string): string | null {
    const saved = parseCapability(text)
    // Tokens must go only to their own service, and this page can only reach its own.
    if (saved && saved.baseUrl !== location.origin)
      return `This key belongs to another service: ${saved.baseUrl}.`
    if (saved?.capability.product !== product || !hasOwner(saved.capability))
      return `This is not the key of ${opens}. Load the key file, or paste all of it.`
    show({ ...saved, isSaved: true })
    return null
  }

  async function openFile({ currentTarget: { files } }: { currentTarget: HTMLInputElement }) {
    problem.value = openText((await files?.[0]?.slice(0, 65_536).text()) ?? '')
  }

  const here = open.value
  if (here) {
    /** If the service is away, the key stays open. */
    const loadIt = (): Promise<Known> =>
      load(here.capability as Of<Product>).catch((error: unknown) => {
        closedBy(error)
        throw error
      })
    return (
      <Loaded
        key={keyText(here)}
        load={loadIt}
        waiting={<div class="skeleton opening" role="status" aria-label="Loading" />}
        above={<KeyBar />}
        weight="primary"
      >
        {children}
      </Loaded>
    )
  }
  const hasKept = kept.value.some(({ capability }) => capability.product === product)
  return (
    <div class="stack loose narrow">
      <Head title={title}>{about}</Head>
      {problem.value !== null && <Notice kind="bad">{problem.value}</Notice>}
      {hasKept && (
        <section class="card stack tight" aria-label="Saved in this browser">
          <h2>Saved in this browser</h2>
          <Things product={product} onOpen={(thing) => show({ ...thing, isSaved: true })} />
        </section>
      )}
      <p>
        <Button href={get.href} weight={hasKept ? 'secondary' : 'primary'} size="large">
          {get.text}
        </Button>
      </p>
      <Form
        card
        label={`Open ${opens}`}
        heading={<h2>Open {opens}</h2>}
        action="Open"
        weight="secondary"
        onSubmit={(field) => {
          problem.value = openText(field('key'))
        }}
      >
        <Field label="Key file" hint="You downloaded it after the purchase.">
          <input type="file" accept="application/json,.json" onChange={openFile} />
        </Field>
        <Input label="Or paste the key" name="key" rows={3} class="mono" />
      </Form>
    </div>
  )
}

/** The name of what is open and where its key is, with the ways to save and to close it. */
export function KeyBar({
  name,
  onRename,
  children,
}: {
  /** Its name if it has one besides that of the kept key. */
  name?: string
  onRename?: (name: string) => Promise<void>
  children?: ComponentChildren
}) {
  const here = open.value
  if (!here) return null
  const { capability, planId, isSaved } = here
  const { publicId, product } = capability
  const { an, noun, title } = THINGS[product]
  const held: Held = { capability, planId }
  const mine = kept.value.find((each) => each.capability.publicId === publicId)
  const shown = plainly(name || mine?.name || title)
  const isLost = !isSaved && mine === undefined

  function keepIt(): void {
    if (keep(held)) saved()
    else toast(BLOCKED)
  }

  function downloadIt(): void {
    downloadKey(held)
    saved()
  }

  const askName = (): void =>
    openDialog(`Rename the ${noun}`, (closeDialog) => (
      <Form
        label="Rename"
        action="Save the name"
        onSubmit={async (field) => {
          await onRename?.(field('name'))
          rename(publicId, field('name'))
          closeDialog()
        }}
        onCancel={closeDialog}
      >
        <Input
          label="Name"
          name="name"
          maxLength={MAX_NAME_CHARS}
          autofocus
          defaultValue={name || mine?.name || ''}
        />
      </Form>
    ))

  const askToForget = (): void => {
    const body = 'Without its key file nobody can open it again.'
    onConsent('Remove the key from this browser?', { body, action: 'Remove it' }, () => {
      forget(publicId)
      close()
    })
  }

  const askToClose = (): void => {
    const body =
      'Its key is only in this tab, and nobody can recover it. Save or download it first.'
    onConsent(`Close ${an} that is not saved?`, { body, action: 'Lose it' }, () => close())
  }

  return (
    <>
      <div class="row between key-bar">
        <div class="row">
          <h1 dir="auto">{shown}</h1>
          {(mine || name !== undefined) && (
            <Button icon="pencil" label="Rename" onClick={askName} />
          )}
        </div>
        <div class="row">
          {children}
          <Menu label="Key">
            <p class="small quiet">
              {mine ? 'Saved in this browser.' : isSaved ? 'Open in this tab only.' : 'Not saved.'}
            </p>
            <Button icon="download" onClick={downloadIt}>
              Download the key
            </Button>
            {mine ? (
              <Button danger icon="trash" onClick={askToForget}>
                Remove from this browser
              </Button>
            ) : (
              <Button icon="lock" onClick={keepIt}>
                Save in this browser
              </Button>
            )}
            <Button icon="x" onClick={isLost ? askToClose : () => close()}>
              Close
            </Button>
          </Menu>
        </div>
      </div>
      {isLost && (
        <Notice
          kind="warn"
          action={
            <div class="row">
              <Button weight="primary" onClick={keepIt}>
                Save the key
              </Button>
              <Button onClick={downloadIt}>Download</Button>
            </div>
          }
        >
          The key is not saved. Closing this tab loses access for good.
        </Notice>
      )}
    </>
  )
}

/** The service says of all that it has not that it has nothing: the known end tells more. */
function whyGone(capability: AnyCapability, error: unknown): string {
  const { noun } = THINGS[capability.product]
  if (!(error instanceof MayflyError) || error.status !== 404) return sentence(error)
  return hasEnded(capability)
    ? `The ${noun} has expired, and the service has deleted it.`
    : `The ${noun} was destroyed, or the operator has suspended it.`
}

/** Whether the key does more than to read a secret. */
const hasOwner = (capability: AnyCapability): boolean =>
  capability.product !== 'whisper' || capability.receiptToken !== undefined
