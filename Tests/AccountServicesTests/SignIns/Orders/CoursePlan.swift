import AccountEvents
import TestSupport

/// Steps of several people and programs, in one of their orders.
struct CoursePlan: Sendable, CustomStringConvertible {
  /// How far somebody goes.
  enum Step: Hashable, Sendable, CustomStringConvertible {
    /// A sign-in is noted; Apple grants its tokens; the store keeps them.
    case signIn(Int)
    /// What a sign-in has left behind is looked after.
    case takeBack(Int)
    /// The person asks for the deletion in the app, and the event is published.
    case ask
    /// The person withdraws consent at Apple, or deletes the Apple Account.
    case happen
    /// The first thing that Apple has not told of yet comes to the topic.
    case arrive
    /// The token revoker goes on to where others may come first.
    case revoker
    /// The data eraser makes an attempt at its next event.
    case eraser

    var description: String {
      switch self {
      case .signIn(let number): "sign-in-\(number)"
      case .takeBack(let number): "take-back-\(number)"
      case .ask: "ask"
      case .happen: "happen"
      case .arrive: "arrive"
      case .revoker: "revoker"
      case .eraser: "eraser"
      }
    }
  }

  /// Steps that come together.
  typealias Steps = [Step]

  let steps: Steps
  /// What passes from one step to the next.
  var pace = Duration.milliseconds(300)
  /// Apple's clock minus ours.
  var skew = Duration.zero
  /// What the person does at Apple.
  var kind = AccountEvent.Kind.consentRevoked
  /// Whether the app has a consent of its own, which shares nothing with the team's other apps.
  var hasOwnConsent = false
  /// The sign-in that has to be in force at the end; nil where that follows from the steps alone.
  var standing: Int?

  var description: String {
    "\(steps.map(\.description).joined(separator: " ")); \(pace) a step, Apple ahead by \(skew), \(kind.name)"
      + (hasOwnConsent ? ", a consent of its own" : "")
  }

  /// A sign-in, step by step.
  static func signIn(_ number: Int) -> [Steps] { Array(repeating: [.signIn(number)], count: 3) }

  /// A deletion that is asked for in the app, with all that the revoker does about it.
  static let deletion: [Steps] = [[.ask]] + Array(repeating: [.revoker], count: 4) + [[.eraser]]

  /// Something that the person does at Apple, and what is done about it.
  static let notification: [Steps] = [[.happen], [.arrive, .revoker], [.revoker], [.eraser]]

  /// Every order of the steps of two, each of whom keeps their own.
  static func orders(_ one: [Steps], _ other: [Steps]) -> [Steps] {
    guard let first = one.first else { return [Array(other.joined())] }
    guard let second = other.first else { return [Array(one.joined())] }
    return orders(Array(one.dropFirst()), other).map { first + $0 }
      + orders(one, Array(other.dropFirst())).map { second + $0 }
  }

  /// One of the orders of the steps of all.
  static func order(_ all: [[Steps]], by random: inout SeededRandom) -> Steps {
    var left = all.map { $0[...] }
    var order: Steps = []
    while let next = left.indices.flatMap({ Array(repeating: $0, count: left[$0].count) }).randomElement(using: &random)
    {
      order += left[next].removeFirst()
    }
    return order
  }
}
