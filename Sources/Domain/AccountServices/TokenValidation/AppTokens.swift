import AccountStore

/// What Apple has said of an app's tokens since this process began: whoever begins anew has to see a good one first.
struct AppTokens {
  /// What follows from a token that Apple does not take.
  enum Conclusion {
    /// It is over.
    case over
    /// It is over once Apple takes one of the app.
    case withheld
    /// Nothing: it is hardly the app's, nor are those that were withheld.
    case nothing
  }

  /// Where more tokens of an app in a row are invalid, they are hardly the app's. Where it has no more, all of them may be.
  static let mostInvalidInARow = 100

  /// An app of which Apple was not asked.
  init() {}

  /// Whether Apple has taken one.
  private var isProven = false
  /// How many it has not taken since.
  private var invalidInARow = 0
  /// Whether the app has so few that Apple may well take none of them; nil where nobody has counted them.
  private var isSmall: Bool?
  /// What is concluded once Apple takes one.
  private var withheld: [TokenValidation] = []

  /// Whether what follows hangs on how many tokens the app has, and nobody has counted them.
  var isToBeCounted: Bool { !isProven && isSmall == nil && invalidInARow < Self.mostInvalidInARow }

  /// The app has so many tokens, or more than `mostInvalidInARow`.
  mutating func counted(_ tokens: Int) { isSmall = tokens <= Self.mostInvalidInARow }

  /// Apple does not take a token: this is what follows of it.
  mutating func doesNotTake(_ validation: TokenValidation) -> Conclusion {
    invalidInARow += 1
    if invalidInARow > Self.mostInvalidInARow { return .nothing }
    if isProven || isSmall == true { return .over }
    withheld.append(validation)
    return .withheld
  }

  /// Apple takes a token. Returns what was withheld.
  mutating func takes() -> [TokenValidation] {
    defer { (isProven, invalidInARow, withheld) = (true, 0, []) }
    return withheld
  }

  /// Concludes nothing from what is withheld. Returns how many those are.
  mutating func giveUp() -> Int {
    defer { withheld = [] }
    return withheld.count
  }
}
