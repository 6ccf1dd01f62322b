/** Makes something of an object once, however often it is asked for. It is kept as long as the object. */
export function oncePer<Key extends object, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const made = new WeakMap<Key, { it: Made }>()
  return (key) => {
    let known = made.get(key)
    if (!known) {
      known = { it: make(key) }
      made.set(key, known)
    }
    return known.it
  }
}
