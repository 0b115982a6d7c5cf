import AccountEvents
import AccountServices
import AccountStore
import Glibc

/// Takes people off our newsletter: each has a file there.
@main struct Newsletter: ConsumerProgram {
  static let program = "newsletter"
  static let consumer: ConsumerName = "newsletter"
  static let summary = "Takes people off the newsletter who have gone."
  static let administrationPort: UInt16 = 9460

  static func makeConsumer(_ settings: NoSettings, in _: ConsumerSurroundings) -> EventConsumer {
    EventConsumer(consumer, outcomes: ["removed", "not-there"], interest: interest) { delivery in
      let name = delivery.event.subject.text
      guard !name.contains("/") else { throw ConsumerFailure.permanent("odd-subject") }
      if unlink("/var/lib/newsletter/\(name)") == 0 { return Decision("removed") }
      if errno == ENOENT { return Decision("not-there") }
      throw ConsumerFailure.transient("disk")
    }
  }

  @Sendable static func interest(in event: AccountEvent) -> Interest? {
    switch event.kind {
    case .consentRevoked, .credentialInvalid: Interest(severity: 1, yieldsTo: [.signIn])
    case .accountDelete, .accountDeletionRequested: Interest(severity: 2, yieldsTo: [.signIn])
    default: nil
    }
  }
}
