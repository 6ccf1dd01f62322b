/** Parts of the page whose modules are loaded when they are needed. */
import { button } from './components.ts'
import { el, fill } from './dom.ts'
import { sentence } from './format.ts'

/** A place that is filled once its content is loaded. If that fails, a click tries again. */
export function showLate(load: () => Promise<HTMLElement>): HTMLElement {
  const place = el('div', {})
  async function start(): Promise<void> {
    fill(place, el('p', { class: 'quiet' }, 'Loading…'))
    try {
      fill(place, await load())
    } catch (error) {
      fill(
        place,
        el('p', {}, `It could not be loaded: ${sentence(error)}`),
        button('Try again', start, { kind: 'small' }),
      )
    }
  }
  void start()
  return place
}

/** A line that opens what is below it. Its content is loaded when it is opened first. */
export function disclosure(
  title: string,
  load: () => Promise<HTMLElement>,
  { isOpen = false, kind = 'tool' } = {},
): HTMLElement {
  const details = el(
    'details',
    {
      class: kind,
      ontoggle: () => {
        if (details.open && details.childElementCount === 1) details.append(showLate(load))
      },
    },
    el('summary', {}, title),
  )
  details.open = isOpen
  return details
}
