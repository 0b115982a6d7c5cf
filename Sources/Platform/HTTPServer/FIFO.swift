/// A queue: first in, first out, in constant time on average.
struct FIFO<Element> {
  private var elements: [Element] = []
  private var first = 0

  var isEmpty: Bool { first == elements.count }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard !isEmpty else { return nil }
    defer {
      first += 1
      if first >= 64, first * 2 >= elements.count || isEmpty {
        elements.removeFirst(first)
        first = 0
      }
    }
    return elements[first]
  }
}
