import AccountStore

/// Some of the consumers that have to say what they did about an event.
package struct ConsumerSet: OptionSet, Sendable, Hashable {
  /// A bit for each of `names`.
  package let rawValue: UInt8

  /// The consumers of these bits.
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// `token-revoker`.
  package static let tokenRevoker = ConsumerSet(rawValue: 1 << 0)
  /// `data-eraser`.
  package static let dataEraser = ConsumerSet(rawValue: 1 << 1)
  /// `email-relay`.
  package static let emailRelay = ConsumerSet(rawValue: 1 << 2)

  /// All of them.
  package static let everyone: ConsumerSet = [.tokenRevoker, .dataEraser, .emailRelay]

  /// All consumers that there are, in the order of their bits.
  static let all: [ConsumerName] = [.tokenRevoker, .dataEraser, .emailRelay]

  /// The consumer of that name; none where nobody waits for what it says.
  package init(_ name: String) {
    self.init(rawValue: Self.all.firstIndex { $0.text == name }.map { 1 << UInt8($0) } ?? 0)
  }

  /// The names of those that it consists of.
  package var names: [String] {
    Self.all.indices.filter { rawValue & 1 << UInt8($0) != 0 }.map { Self.all[$0].text }
  }
}

/// Which consumers an event concerns, by its type: an obligation is met when each of them has said what it did about it.
package struct ConcernedConsumers: Sendable {
  /// The table. What is not in it is of a later version, and concerns all: nothing is called complete that nobody knows.
  package static let table: [(types: [String], consumers: ConsumerSet)] = [
    (["email-enabled", "email-disabled", "account-transferred"], .emailRelay),
    (["consent-revoked", "account-delete", "account-deletion-requested", "credential-invalid"], .everyone),
  ]

  private let installed: ConsumerSet

  /// The table for an operator who does not run all of the consumers.
  package init(without absent: ConsumerSet) {
    installed = ConsumerSet.everyone.subtracting(absent)
  }

  /// Who has to say something about an event of that type.
  package func consumers(of type: String) -> ConsumerSet {
    let concerned = Self.table.first { $0.types.contains(type) }?.consumers
    return (concerned ?? .everyone).intersection(installed)
  }
}
