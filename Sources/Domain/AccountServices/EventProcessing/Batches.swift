import EventLoop

/// Gathers what is to be done and does it in batches, one at a time: what comes while one is under way goes together into
/// the next.
@Loop
final class Batches<Element> {
  private let most: Int
  private let work: @Loop ([Element]) async -> Void
  private var waiting: [Element] = []
  private var isWorking = false

  /// Does `work` with `most` elements at once at most, in their order.
  init(upTo most: Int, _ work: @escaping @Loop ([Element]) async -> Void) { (self.most, self.work) = (most, work) }

  /// Whether nothing waits and nothing is under way.
  var isIdle: Bool { !isWorking && waiting.isEmpty }

  /// Puts an element behind all others.
  func add(_ element: Element) {
    waiting.append(element)
    if isWorking { return }
    isWorking = true
    Task(executorPreference: Loop.executor) { await self.workOff() }
  }

  private func workOff() async {
    while !waiting.isEmpty {
      let batch = Array(waiting.prefix(most))
      waiting.removeFirst(batch.count)
      await work(batch)
    }
    isWorking = false
  }
}
