package import AccountEvents
import AccountStore

/// Which obligations are met, and which are open: an obligation is met once each consumer that it concerns has said what it
/// did about the event, or a person has decided that it does nothing.
///
/// The entries of a log are taken in one after the other. What is kept is what is open, and effects whose obligation has not
/// come yet: the log reads its topics beside each other. A pair that fits is dropped; of the last ones is remembered that
/// they were there, because an event may have more than one effect of a consumer.
package struct Completeness: Sendable {
  /// An obligation that is not met.
  package struct Open: Sendable, Hashable {
    /// The place of its entry in the log.
    package let index: UInt64
    /// When the event came: from then on there is a duty.
    package let came: Timestamp
    /// Who has not said anything yet.
    package fileprivate(set) var missing: ConsumerSet
    fileprivate let type: UInt8
    fileprivate let account: UInt64
    /// When the last of those has done it that have said something.
    fileprivate var last: Timestamp?
    /// Whether an event of another account has the same id: then the account alone decides whose an effect is.
    fileprivate var isShared = false
  }

  /// What is to be said of the obligations of a type, or of all.
  package struct Figures: Sendable, Hashable {
    /// How many came in the period.
    package fileprivate(set) var received = 0
    /// How many of them are met.
    package fileprivate(set) var met = 0
    /// How many of those were met later than the deadline says.
    package fileprivate(set) var late = 0
    /// How long it took from the event's coming until the last consumer had done what it does.
    package fileprivate(set) var times = TimeDistribution()

    fileprivate mutating func add(_ other: Figures) {
      (received, met, late) = (received + other.received, met + other.met, late + other.late)
      times.add(other.times)
    }
  }

  /// What was done about an event whose obligation has not come.
  private struct Early {
    /// Nil where that is not known.
    let account: UInt64?
    var done: ConsumerSet
    var last: Timestamp?
  }

  /// So many types are told apart; there are six.
  private static let typeLimit = 32

  private let concerned: ConcernedConsumers
  private let period: AuditPeriod
  private let deadline: Duration
  private var types: [String] = []
  private var figuresByType: [Figures] = []
  private var open = Namesakes<Open>()
  private var early = Namesakes<Early>()
  private var met = RecentEvents()

  /// Nothing yet. Of the obligations that came in the period is said what became of them, whenever that was.
  package init(of concerned: ConcernedConsumers, in period: AuditPeriod, within deadline: Duration) {
    (self.concerned, self.period, self.deadline) = (concerned, period, deadline)
  }

  /// Takes in an entry of the log. Those of no event change nothing.
  package mutating func take(_ entry: AuditEntry, at index: UInt64) {
    switch entry {
    case .obligation(let obligation): take(obligation, at: index)
    case .effect(let effect): take(effect)
    case .decision(let decision): take(decision)
    case .gap: break
    }
  }

  // MARK: Entries

  private mutating func take(_ obligation: AuditEntry.Obligation, at index: UInt64) {
    let type = number(of: obligation.type)
    var item = Open(
      index: index, came: obligation.came, missing: concerned.consumers(of: obligation.type), type: type,
      account: Self.tag(obligation.account), last: nil)
    if period.contains(item.came) { figuresByType[Int(type)].received += 1 }
    let event = ShortDigest(obligation.id)
    let candidates = early[event]
    var left: [Early] = []
    for candidate in candidates {
      if candidates.count == 1 || candidate.account == item.account || candidate.account == nil {
        item.missing.subtract(candidate.done)
        item.last = Self.later(item.last, candidate.last)
      } else {
        left.append(candidate)
      }
    }
    if !candidates.isEmpty { early[event] = left }
    if item.missing.isEmpty { return settle(item, event) }
    var namesakes = open[event]
    item.isShared = !namesakes.isEmpty
    for place in namesakes.indices { namesakes[place].isShared = true }
    open[event] = namesakes + [item]
  }

  private mutating func take(_ effect: AuditEntry.Effect) {
    let facts = EffectFacts(effect)
    let consumer = ConsumerSet(facts.consumer)
    // What others say, nobody waits for.
    guard !consumer.isEmpty else { return }
    let event = ShortDigest(effect.cause)
    note(consumer, event, facts.account.map { Self.tag($0) }, at: effect.source.time ?? facts.doneAt)
  }

  /// A dead letter that was discarded has no effect any more, and a person has said why.
  private mutating func take(_ decision: AuditEntry.Decision) {
    let topic = decision.source.origin.topic
    guard decision.kind == .discarded, let id = decision.id,
      let consumer = ConsumerSet.all.first(where: { Topic.deadLetters(of: $0).name == topic })
    else { return }
    note(ConsumerSet(consumer.text), ShortDigest(id), nil, at: decision.time)
  }

  /// Notes that a consumer has settled an event, at the latest then. `account` is whose, where that is known.
  ///
  /// An event is known by its id. Where several accounts have events of that id, the account decides, and where that is not
  /// known, nothing is settled. Otherwise it does not count: once the key is rotated that accounts are hashed with, an
  /// obligation and its effects can bear two hashes of one account.
  private mutating func note(
    _ consumer: ConsumerSet, _ event: ShortDigest, _ account: UInt64?, at time: Timestamp?
  ) {
    let candidates = open[event]
    let own = candidates.indices.filter { !candidates[$0].isShared || candidates[$0].account == account }
    guard !own.isEmpty else {
      if let account, met.contains(event, account) { return }
      return remember(consumer, event, account, at: time)
    }
    var left: [Open] = []
    for (place, candidate) in candidates.enumerated() {
      var item = candidate
      if own.contains(place) {
        // The first thing that a consumer says ends its duty.
        if item.missing.contains(consumer) { item.last = Self.later(item.last, time) }
        item.missing.subtract(consumer)
      }
      if item.missing.isEmpty { settle(item, event) } else { left.append(item) }
    }
    open[event] = left
  }

  private mutating func remember(
    _ consumer: ConsumerSet, _ event: ShortDigest, _ account: UInt64?, at time: Timestamp?
  ) {
    if let place = early[event].firstIndex(where: { $0.account == account }) {
      if early[event][place].done.contains(consumer) { return }
      early[event][place].done.insert(consumer)
      early[event][place].last = Self.later(early[event][place].last, time)
    } else {
      early[event].append(Early(account: account, done: consumer, last: time))
    }
  }

  private mutating func settle(_ item: Open, _ event: ShortDigest) {
    met.insert(event, item.account)
    guard period.contains(item.came) else { return }
    let length = item.last.map { $0.milliseconds - item.came.milliseconds } ?? 0
    figuresByType[Int(item.type)].met += 1
    if .milliseconds(length) > deadline { figuresByType[Int(item.type)].late += 1 }
    figuresByType[Int(item.type)].times.add(length)
  }

  private static func later(_ one: Timestamp?, _ other: Timestamp?) -> Timestamp? {
    guard let one, let other else { return one ?? other }
    return max(one, other)
  }

  /// Enough of an account's hash to tell a few accounts apart.
  private static func tag(_ account: AccountHash) -> UInt64 {
    account.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  private mutating func number(of type: String) -> UInt8 {
    if let known = types.firstIndex(of: type) { return UInt8(known) }
    if types.count == Self.typeLimit { return UInt8(Self.typeLimit - 1) }
    types.append(types.count == Self.typeLimit - 1 ? "other" : type)
    figuresByType.append(Figures())
    return UInt8(types.count - 1)
  }

  // MARK: Findings

  /// What is to be said of each type of which something came in the period, by name.
  package var figures: [(type: String, figures: Figures)] {
    zip(types, figuresByType).filter { $0.1.received > 0 }.sorted { $0.0 < $1.0 }.map { ($0.0, $0.1) }
  }

  /// What is to be said of all types together.
  package var total: Figures { figuresByType.reduce(into: Figures()) { $0.add($1) } }

  /// What came in the period and is open, in the order of the log.
  package var openObligations: [Open] {
    open.all.filter { period.contains($0.came) }.sorted { $0.index < $1.index }
  }

  /// Whether an obligation that is open should have been met by `now`.
  package func isOverdue(_ open: Open, at now: Timestamp) -> Bool { now - open.came > deadline }

  /// The type of an obligation that is open.
  package func type(of open: Open) -> String { types[Int(open.type)] }

  /// How many obligations and effects are kept at the moment: what memory is needed for.
  package var keptCount: Int { open.count + early.count }
}

/// When obligations came that are asked for: from a moment on, up to another one; nil is without end.
package struct AuditPeriod: Sendable, Hashable {
  /// The first moment that belongs to it.
  package let from: Timestamp?
  /// The first moment that does not.
  package let to: Timestamp?

  /// The period between two moments.
  package init(from: Timestamp?, to: Timestamp?) { (self.from, self.to) = (from, to) }

  /// Whether the moment belongs to it.
  package func contains(_ moment: Timestamp) -> Bool {
    (from.map { $0 <= moment } ?? true) && (to.map { moment < $0 } ?? true)
  }
}

extension AuditEntry.Obligation {
  /// When the event came: by the broker's clock, or, where that was not said, when it was signed.
  package var came: Timestamp { source.time ?? issuedAt }
}
