/// A queue: first in, first out, in constant time on average.
struct FIFO<Element> {
  private var elements: [Element] = []
  private var head = 0

  var count: Int { elements.count - head }
  var isEmpty: Bool { head == elements.count }
  var first: Element? { isEmpty ? nil : elements[head] }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard !isEmpty else { return nil }
    head += 1
    defer { forget() }
    return elements[head - 1]
  }

  /// The first `most` at most, in their order.
  mutating func popFirst(upTo most: Int) -> [Element] {
    let some = Array(elements[head...].prefix(most))
    head += some.count
    forget()
    return some
  }

  mutating func removeAll(where isToGo: (Element) -> Bool) {
    elements.removeFirst(head)
    head = 0
    elements.removeAll(where: isToGo)
  }

  /// Calls `body` with each, in their order.
  func forEach(_ body: (Element) -> Void) { for element in elements[head...] { body(element) } }

  /// Lets go of what is over, once it is half of all.
  private mutating func forget() {
    if isEmpty {
      elements.removeAll(keepingCapacity: elements.count <= 4096)
    } else if head >= 64, head * 2 >= elements.count {
      elements.removeFirst(head)
    } else {
      return
    }
    head = 0
  }
}
