import AccountServices
import Configuration

/// Where letters wait for a person: each has the same commands.
protocol LetterRoom: Sendable {
  /// The first word of its commands.
  static var name: String { get }
  /// What waits there, as a part of a sentence.
  static var contents: String { get }
  /// What `list` says of a letter, as a part of a sentence.
  static var columns: String { get }
  /// What stands on an example's line to say whose letters are meant, with a space in front.
  static var exampleOptions: String { get }

  /// Which topic is meant.
  static func readTopic(_ arguments: inout CommandArguments) -> LetterTopic
}

/// What consumers could not process.
enum DeadLettersRoom: LetterRoom {
  static let name = "dead-letters"
  static let contents = "what a consumer could not process"
  static let columns = """
    its place, when it was put aside, how many seconds ago, why, after how many attempts, the event's type and id, and
    where its record stood; 'given-up' where it was tried until its topic was about to forget it, 'truncated' where the
    letter was too large for its topic and only says where the record stands
    """
  static let exampleOptions = " --consumer token-revoker"

  static func readTopic(_ arguments: inout CommandArguments) -> LetterTopic {
    .deadLetters(of: arguments.read("--consumer", "NAME", .consumerName, "Whose letters: such as token-revoker."))
  }
}

/// What the ingress could not act on.
enum QuarantineRoom: LetterRoom {
  static let name = "quarantine"
  static let contents = "what Apple signed and the ingress could not act on"
  static let columns = """
    its place, when it was put aside, how many seconds ago, why, what Apple calls the event, its id, team and audience,
    and when Apple signed it; 'former-key' where an earlier version of siwa has put it there
    """
  static let exampleOptions = ""

  static func readTopic(_ arguments: inout CommandArguments) -> LetterTopic { .quarantine }
}
