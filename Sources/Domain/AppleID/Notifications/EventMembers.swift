import AccountEvents
import JSON

/// The members of an event's object that we know, each nil where it is missing or of another kind.
///
/// One that is of another kind makes this event one of unknown form, and says nothing about the others beside it.
struct EventMembers: ~Copyable {
  private(set) var type: String?
  private(set) var subject: String?
  private(set) var time: Int64?
  private(set) var email: String?
  private(set) var isPrivate: Bool?
  /// Whether `is_private_email` is there, but neither true nor false.
  private(set) var isPrivacyUnclear = false

  init(reading reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { name, value throws(JSONError) in try read(name, &value) }
  }

  private mutating func read(_ name: String, _ value: inout JSONReader) throws(JSONError) {
    switch (name, try value.kind) {
    case ("type", .string): type = try value.readString()
    case ("sub", .string): subject = try value.readString()
    case ("event_time", .number):
      do {
        time = try value.readInteger()
      } catch  where error.code == .notAnInteger {
        time = nil
      }
    case ("email", .string): email = try value.readString()
    case ("is_private_email", .boolean): isPrivate = try value.readBoolean()
    case ("is_private_email", .string):
      switch try value.readString() {
      case "true": isPrivate = true
      case "false": isPrivate = false
      default: isPrivacyUnclear = true
      }
    case ("is_private_email", _): isPrivacyUnclear = true
    default: break
    }
  }
}

extension EventMembers {
  /// What they say together about `subject`.
  func meaning(for subject: AppleSubject?) -> WrittenEvent.Meaning {
    let kind: AccountEvent.Kind?
    switch type {
    case "email-enabled": kind = address.map { .emailEnabled($0, isPrivate: isPrivate ?? false) }
    case "email-disabled": kind = address.map { .emailDisabled($0, isPrivate: isPrivate ?? false) }
    case "consent-revoked": kind = .consentRevoked
    case "account-delete", "account-deleted": kind = .accountDelete  // Apple's older and newer spelling
    case nil: return .unclear(.unknownForm)
    default: return .unclear(.unknownType)
    }
    guard let kind, let subject, let moment else { return .unclear(.unknownForm) }
    return .event(kind, subject, occurredAt: moment)
  }

  private var address: RelayAddress? { isPrivacyUnclear ? nil : email.flatMap(RelayAddress.init) }

  /// Apple sends milliseconds, and its page shows seconds. Below this bound a number of milliseconds would lie before
  /// 1973, and above it a number of seconds after 5138.
  private var moment: Timestamp? {
    time.flatMap { $0 < 100_000_000_000 ? Timestamp(seconds: $0) : Timestamp(milliseconds: $0) }
  }
}
