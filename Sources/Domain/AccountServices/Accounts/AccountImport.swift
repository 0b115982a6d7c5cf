package import AccountEvents
package import AccountStore
package import EventLoop

/// Brings sign-ins from before the account store into it, so that what follows from events finds whose tokens there are.
///
/// Each line is durable when its answer has come, and the same line again changes nothing: an import that was broken off
/// goes on at the first line that it does not know of, or from the beginning.
@Loop
package final class AccountImport {
  /// How far it is.
  package struct Progress: Sendable, Hashable {
    /// Lines that were read, empty ones too.
    package var lines: Int64 = 0
    /// Sign-ins that the store has.
    package var accounts: Int64 = 0
    /// Tokens that the store has.
    package var tokens: Int64 = 0
    /// Tokens that are not kept, because their authorization was over before they came.
    package var ended: Int64 = 0
    /// Lines that are no account.
    package var refused: Int64 = 0

    /// A progress from its parts.
    package init(lines: Int64 = 0, accounts: Int64 = 0, tokens: Int64 = 0, ended: Int64 = 0, refused: Int64 = 0) {
      (self.lines, self.accounts, self.tokens, self.ended, self.refused) = (lines, accounts, tokens, ended, refused)
    }
  }

  /// What is said of a single line.
  package enum Note: Sendable, Hashable, CustomStringConvertible {
    /// It is no account.
    case refused(ImportedAccount.Fault)
    /// Its token is not kept: the account was erased, or its tokens were ended, after that sign-in.
    case ended

    /// For the operator: nothing of what the line says.
    package var description: String {
      switch self {
      case .refused(let fault): "\(fault)"
      case .ended: "its token is not kept: the account was erased or its authorization ended since that sign-in"
      }
    }
  }

  /// How many sign-ins are on their way to the store at once.
  private static let inFlight = 64

  private let store: (any AccountStore)?
  private let teams: [ClientID: TeamID]
  private let now: @Sendable () -> Timestamp
  private let tell: (_ line: Int64, Note) -> Void
  /// How far it is.
  package private(set) var progress: Progress
  /// The lines on their way to the store.
  private var underWay: Set<Int64> = []

  /// An import into `store`; nil only reads the lines. `skipped`: so many lines came before, and are not counted as
  /// anything else. `tell` is called for each line of which there is something to say.
  package init(
    into store: (any AccountStore)?, teams: [ClientID: TeamID], skipped: Int64 = 0,
    now: @escaping @Sendable () -> Timestamp, tell: @escaping (_ line: Int64, Note) -> Void
  ) {
    (self.store, self.teams, self.now, self.tell) = (store, teams, now, tell)
    progress = Progress(lines: skipped)
  }

  /// The first line of which it is not known whether the store has it, counted from 1.
  package var nextLine: Int64 { underWay.min() ?? progress.lines + 1 }

  /// Takes lines, pages of them, until `page` says nil.
  ///
  /// Throws what the store or `page` throws, once all that was on its way has come to its end: `nextLine` then says where
  /// to go on.
  package func run(_ page: @Loop () async throws -> [[UInt8]]?) async throws {
    while let lines = try await page() {
      try await withThrowingTaskGroup(of: Void.self) { group in
        var count = 0
        for line in lines {
          progress.lines += 1
          guard let account = read(line) else { continue }
          let number = progress.lines
          underWay.insert(number)
          count += 1
          if count > Self.inFlight { try await group.next() }
          group.addTask(executorPreference: Loop.executor) { try await self.record(account, number) }
        }
        try await group.waitForAll()
      }
    }
  }

  /// The account of the line that was read last; nil where it holds none.
  private func read(_ line: [UInt8]) -> ImportedAccount? {
    if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }) { return nil }
    do throws(ImportedAccount.Fault) {
      return try ImportedAccount(reading: line, teams: teams, at: now())
    } catch {
      progress.refused += 1
      tell(progress.lines, .refused(error))
      return nil
    }
  }

  private func record(_ account: ImportedAccount, _ line: Int64) async throws(AccountStoreError) {
    let ended =
      try await store?.recordSignIn(account.account, at: account.signedInAt, tokens: account.tokens) ?? []
    underWay.remove(line)
    progress.accounts += 1
    progress.tokens += Int64(account.tokens.count - ended.count)
    progress.ended += Int64(ended.count)
    if !ended.isEmpty { tell(line, .ended) }
  }
}
