/** Creates and fills elements of the page. Strings become text; nothing here parses markup. */

export type Child = Node | string | null | undefined | false

type Attributes = Record<string, string | boolean | undefined | ((event: Event) => unknown)>

/**
 * Creates an element. A function becomes a listener (`onclick`), and `true` an attribute without a value.
 * `false` and `undefined` leave the attribute out.
 */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  apply(element, attributes)
  element.append(...present(children))
  return element
}

/** Creates an SVG element. */
export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag)
  apply(element, attributes)
  element.append(...present(children))
  return element
}

/** The element of the page with this id. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id)
  if (!element) throw new Error(`the page has no #${id}`)
  return element as T
}

/** A path or a dotted name, which may break into lines at its separators. */
export function breakable(name: string): Child[] {
  return name.split(/(?=[/.])/).flatMap((part) => [el('wbr'), part])
}

/** Replaces the children of an element. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...present(children))
}

/** Changes a text in place, so that what a person has selected of it stays selected. */
export function setText(node: Text, text: string): void {
  if (node.data === text) return
  const selection = getSelection()
  const { anchorNode, anchorOffset, focusNode, focusOffset } = selection ?? {}
  const atAnchor = anchorNode === node
  const atFocus = focusNode === node
  node.data = text
  if (!anchorNode || !focusNode || !(atAnchor || atFocus)) return
  const within = (isHere: boolean, offset = 0): number =>
    isHere ? Math.min(offset, text.length) : offset
  selection?.setBaseAndExtent(
    anchorNode,
    within(atAnchor, anchorOffset),
    focusNode,
    within(atFocus, focusOffset),
  )
}

function apply(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else if (typeof value === 'string') element.setAttribute(name, value)
    else if (value) element.setAttribute(name, '')
  }
}

function present(children: Child[]): (Node | string)[] {
  return children.filter((child) => child !== null && child !== undefined && child !== false)
}
