import AccountEvents
import AccountStore

extension TransferResult.Answer {
  /// Whether it cannot be meant: Apple gives back what it was asked with, or the same person in another wrapping. That is
  /// what comes of a transfer to the team that asks.
  func isUseless(for user: TransferUser) -> Bool {
    switch self {
    case .identifier(let identifier):
      guard let subject = user.subject else { return false }
      return Self.isSame(identifier.text, subject.text)
    case .account(let subject, _, _):
      guard let identifier = user.transferSubject else { return false }
      return Self.isSame(identifier.text, subject.text)
    case .refused: return false
    }
  }

  /// The same text, or texts whose part that names the person is the same one: `minute.person.minute`.
  private static func isSame(_ one: String, _ other: String) -> Bool {
    if one == other { return true }
    let parts = [one, other].map { $0.split(separator: ".", omittingEmptySubsequences: false) }
    return parts.allSatisfy { $0.count == 3 } && parts[0][1] == parts[1][1]
  }
}
