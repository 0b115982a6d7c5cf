import AccountEvents

/// Where a sealed value belongs. It is authenticated with the value, so that one which was moved does not open.
struct SealedPlace {
  /// What the value is; for an error's words.
  let name: String
  /// The name and all that tells the place from others of that name.
  let bytes: [UInt8]

  /// Each part goes in behind its length: no two places have the same bytes.
  private init(_ name: String, _ parts: [UInt8]...) {
    self.name = name
    var bytes: [UInt8] = []
    bytes.reserveCapacity(parts.reduce(name.utf8.count) { $0 + 4 + $1.count })
    bytes.append(contentsOf: name.utf8)
    for part in parts {
      unsafe withUnsafeBytes(of: UInt32(part.count).bigEndian) { unsafe bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: part)
    }
    self.bytes = bytes
  }

  // Under the master key.
  static func hashKey(_ number: Int) -> SealedPlace {
    // The first was alone once.
    number == 1 ? SealedPlace("siwa hash key") : SealedPlace("siwa hash key", Array("\(number)".utf8))
  }
  static func dataKey(of account: AccountHash) -> SealedPlace { SealedPlace("siwa data key", account.bytes) }

  static func outbox(_ event: EventID) -> SealedPlace { SealedPlace("siwa outbox", Array(event.text.utf8)) }

  static func transferPlan(_ plan: TransferPlan) -> SealedPlace {
    SealedPlace(
      "siwa transfer plan", Array(plan.name.utf8), Array(plan.side.rawValue.utf8), Array(plan.team.text.utf8),
      Array(plan.otherTeam.text.utf8), Array(plan.client.text.utf8))
  }

  // Under the plan's data key.
  static func transferUser(_ number: Int64) -> SealedPlace {
    SealedPlace("siwa transfer user", Array("\(number)".utf8))
  }

  // Under the account's data key.
  static func subject(of account: AccountHash) -> SealedPlace { SealedPlace("siwa subject", account.bytes) }
  static func address(of account: AccountHash) -> SealedPlace { SealedPlace("siwa address", account.bytes) }
  static func token(of account: AccountHash, _ kind: NewToken.Kind, _ client: ClientID) -> SealedPlace {
    SealedPlace("siwa token", account.bytes, Array(kind.rawValue.utf8), Array(client.text.utf8))
  }
}
