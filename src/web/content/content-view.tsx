/** Shows bytes that a stranger sent, in every form that fits them. They are never parsed as markup. */
import './content.css'
import { useEffect, useState } from 'preact/hooks'
import { download } from '../lib/download.ts'
import { plainly } from '../lib/foreign.ts'
import { count, plural, bytes as sized } from '../lib/format.ts'
import { Button, Choice } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Fold, Pre } from '../ui/show.tsx'
import { textOf } from './charset.ts'
import { indented } from './json.ts'
import { mediaOf, pictureType } from './media.ts'
import { type Part, partsOf } from './multipart.ts'
import { Marked, PairsTable } from './table.tsx'

/** What a stranger sent, to be shown. */
export type Content = {
  bytes: Uint8Array<ArrayBuffer>
  contentType: string | null
  /** What a screen reader calls it, such as `Body`. */
  label: string
  /** The bytes as they were sent, if others are shown. */
  sent?: Uint8Array
}

/** Only this much is drawn. The download has all of it. */
const MAX_SHOWN_CHARACTERS = 200_000
const MAX_SHOWN_BYTES = 16 * 1024
/** A longer form or JSON, which only unpacking makes, would take long to parse. */
const MAX_PARSED_CHARACTERS = 1024 * 1024
const HEX_COLUMNS = 16
/** A form has far fewer parts. */
const MAX_PARTS = 200
/** A form with more parts opens folded. */
const MAX_OPEN_PARTS = 5
const MAX_OPEN_BYTES = 256 * 1024
const MAX_NAME_CHARACTERS = 120

/** A longer text is drawn without colours, because thousands of elements are slow. */
const MAX_COLOURED_CHARACTERS = 100_000

/** A name with its colon, a string, a number, or a word. */
const COLOURED = /("(?:[^"\\]|\\.)*"(?=:)|"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)/

type Form = 'Picture' | 'Parts' | 'Form' | 'JSON' | 'Text' | 'Hex' | 'As sent'

export function ContentView({ content }: { content: Content }) {
  const { bytes, contentType, sent, label } = content
  const decoded = textOf(bytes, mediaOf(contentType))
  const text = decoded?.text ?? null
  const forms = formsOf(content, text)
  const [chosen, choose] = useState<Form | null>(null)
  const form = chosen !== null && forms.includes(chosen) ? chosen : (forms[0] ?? 'Hex')
  const size = sent ? `${sized(sent.length)}, unpacked ${sized(bytes.length)}` : sized(bytes.length)
  const name = label.toLowerCase()
  return (
    <div class="stack tight">
      <div class="row between">
        <div class="row">
          <Choice label={`Form of the ${name}`} names={forms} chosen={form} onChoose={choose} />
          {text !== null && <CopyButton text={text} weight="quiet">{`Copy ${name}`}</CopyButton>}
        </div>
        <span class="small quiet">{`${size} · ${plainly(contentType ?? 'no type')}`}</span>
      </div>
      {decoded?.remark && <p class="small quiet">{decoded.remark}</p>}
      <Shown form={form} content={content} text={text ?? ''} />
    </div>
  )
}

function Shown({ form, content, text }: { form: Form; content: Content; text: string }) {
  const { bytes, label, sent } = content
  if (form === 'Picture') return <Picture bytes={bytes} />
  if (form === 'Parts') return <Parts content={content} />
  if (form === 'Form') return <PairsTable label="Fields" pairs={[...new URLSearchParams(text)]} />
  if (form === 'JSON')
    return <Text text={indented(text, MAX_SHOWN_CHARACTERS)} label={label} isJson />
  if (form === 'Text') return <Text text={text} label={label} />
  return <Hex bytes={form === 'As sent' && sent ? sent : bytes} label={label} />
}

/** The forms that fit, the best first. */
function formsOf({ bytes, contentType, sent }: Content, text: string | null): Form[] {
  const { type } = mediaOf(contentType)
  const isForm = type === 'application/x-www-form-urlencoded'
  const isShort = text !== null && text.length <= MAX_PARSED_CHARACTERS
  const forms: (Form | false)[] = [
    pictureType(bytes) !== null && 'Picture',
    type === 'multipart/form-data' && 'Parts',
    isShort && isForm && 'Form',
    isShort && !isForm && isJson(text, type) && 'JSON',
    text !== null && 'Text',
    'Hex',
    sent !== undefined && 'As sent',
  ]
  return forms.filter((form) => form !== false)
}

/** A picture of pixels. The browser decodes it, and the page only knows that it did. */
function Picture({ bytes }: { bytes: Uint8Array<ArrayBuffer> }) {
  const type = pictureType(bytes) ?? ''
  const [url, setUrl] = useState('')
  const [said, say] = useState(type)
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes, type])
  return (
    <figure class="stack tight">
      {url !== '' && (
        <img
          class="picture"
          alt="As it was sent"
          decoding="async"
          src={url}
          onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) =>
            say(`${type}, ${naturalWidth} × ${naturalHeight} pixels`)
          }
          onError={() => say(`This browser cannot show this picture (${type}).`)}
        />
      )}
      <figcaption class="small quiet">{said}</figcaption>
    </figure>
  )
}

function Text({ text, label, isJson = false }: { text: string; label: string; isJson?: boolean }) {
  const shown = text.slice(0, MAX_SHOWN_CHARACTERS)
  return (
    <>
      {shown !== text && <Cut at={plural(shown.length, 'character')} />}
      <Pre kind="content" label={label}>
        {isJson ? <Json text={shown} /> : <Marked text={shown} />}
      </Pre>
    </>
  )
}

/** JSON in colours. */
function Json({ text }: { text: string }) {
  if (text.length > MAX_COLOURED_CHARACTERS) return <Marked text={text} />
  const parts = text.split(COLOURED)
  return (
    <>
      {parts.map((part, at) =>
        at % 2 === 0 ? (
          part
        ) : (
          <span key={at} class={kindOf(part, parts[at + 1])}>
            <Marked text={part} />
          </span>
        ),
      )}
    </>
  )
}

function kindOf(token: string, next: string | undefined): string {
  if (!token.startsWith('"')) return 'json-word'
  return next?.startsWith(':') ? 'json-name' : 'json-string'
}

function Hex({ bytes, label }: { bytes: Uint8Array; label: string }) {
  const shown = bytes.subarray(0, MAX_SHOWN_BYTES)
  return (
    <>
      {shown.length < bytes.length && <Cut at={sized(shown.length)} />}
      <Pre kind="content hex" label={label}>
        {hexDump(shown)}
      </Pre>
    </>
  )
}

/** What is cut is said first: nobody reads to the end to learn it. */
const Cut = ({ at }: { at: string }) => (
  <p class="small quiet">{`The first ${at}; the rest is in the download.`}</p>
)

function Parts({ content: { bytes, contentType } }: { content: Content }) {
  const [parts, setParts] = useState<Part[] | null>([])
  useEffect(() => void partsOf(bytes, contentType).then(setParts), [bytes, contentType])
  if (!parts)
    return <p>The body has no parts as its Content-Type describes them. Text and Hex show it.</p>
  const isOpen = ({ bytes }: Part): boolean =>
    parts.length <= MAX_OPEN_PARTS && bytes.length <= MAX_OPEN_BYTES
  return (
    <div class="stack">
      {parts.length > MAX_PARTS && (
        <p class="small quiet">{`Only its first ${MAX_PARTS} parts are shown.`}</p>
      )}
      {parts.slice(0, MAX_PARTS).map((part, index) => (
        <Fold key={index} title={titleOf(part, index)} open={isOpen(part)}>
          {() => <PartView part={part} number={index + 1} />}
        </Fold>
      ))}
    </div>
  )
}

function PartView({ part: { bytes, contentType }, number }: { part: Part; number: number }) {
  if (bytes.length === 0) return <p class="quiet part">Empty.</p>
  return (
    <div class="stack part">
      <ContentView content={{ bytes, contentType, label: `Part ${number}` }} />
      <div class="row">
        <Button
          icon="download"
          // Under a name of our own: a stranger's could end like a program.
          onClick={() => download(`part-${number}.bin`, bytes, 'application/octet-stream')}
        >
          Download part {number}
        </Button>
      </div>
    </div>
  )
}

function titleOf({ name, filename, contentType, bytes: { length } }: Part, index: number): string {
  const file = filename === null ? [] : [`file ${filename || 'without a name'}`, contentType]
  return [
    `Part ${count(index + 1)}`,
    ...[name, ...file].filter(Boolean).map((each) => plainly(cut(each))),
    sized(length),
  ].join(' · ')
}

const cut = (text: string): string =>
  text.length > MAX_NAME_CHARACTERS ? `${text.slice(0, MAX_NAME_CHARACTERS)}…` : text

function isJson(text: string, type: string): boolean {
  const isCalledJson = /[/+]json$/.test(type)
  if (!isCalledJson && !/^[\s]*[[{]/.test(text.slice(0, 1_000))) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function hexDump(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += HEX_COLUMNS) {
    const row = [...bytes.subarray(at, at + HEX_COLUMNS)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row
      .map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '.'))
      .join('')
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(HEX_COLUMNS * 3 - 1)}  ${text}`)
  }
  return lines.join('\n')
}
