package import AccountEvents
package import AccountStore
import JSON

/// A sign-in from before the account store, as a line of an import tells it: JSON, one object.
package struct ImportedAccount: Sendable, Hashable {
  /// The longest line that is read, in bytes.
  package static let longestLine = 16_384
  private static let limits = JSONLimits(bytes: longestLine, depth: 2, members: 16)

  /// Whose account it is.
  package let account: Account
  /// When the person signed in last. What happened before does not touch the token.
  package let signedInAt: Timestamp
  /// The refresh token, with the app that it was issued to; none where the application kept none.
  package let tokens: [NewToken]

  /// Why a line is no account: nothing of what it says.
  package enum Fault: Error, Sendable, Hashable, CustomStringConvertible {
    /// A member of the object.
    package enum Member: String, Sendable, CaseIterable {
      /// The person, as Apple names them to the team.
      case subject = "sub"
      /// The app that the person signed in to.
      case client = "client_id"
      /// The team of that app.
      case team
      /// When that was.
      case signedInAt = "signed_in_at"
      /// What Apple gave for it.
      case refreshToken = "refresh_token"
    }

    /// It is not one JSON object with distinct members.
    case malformedLine
    /// It has a member that nobody knows: a token under another name would be lost.
    case unknownMember
    /// A member that has to be there is not.
    case missing(Member)
    /// A member is of another kind or form than it has to be.
    case malformed(Member)
    /// The app is none of a configured team.
    case unknownClient
    /// The app is another team's.
    case wrongTeam
    /// The sign-in lies ahead of our clock.
    case notYet

    /// The reason, for the operator.
    package var description: String {
      switch self {
      case .malformedLine: "not one JSON object with distinct members"
      case .unknownMember:
        "a member that is not known; known are \(Member.allCases.map(\.rawValue).joined(separator: ", "))"
      case .missing(let member): "\(member.rawValue) is missing"
      case .malformed(.signedInAt):
        "signed_in_at: expected seconds since 1970 or a time such as 2026-01-31T12:00:00Z"
      case .malformed(let member): "\(member.rawValue): not of its form"
      case .unknownClient: "client_id: stands in no teams.TEAM.audiences of the configuration"
      case .wrongTeam: "team: client_id is another team's, by teams.TEAM.audiences of the configuration"
      case .notYet: "signed_in_at: lies ahead of this machine's clock"
      }
    }
  }

  /// Reads a line. `teams`: the team of each app that is ours.
  package init(reading line: [UInt8], teams: [ClientID: TeamID], at now: Timestamp) throws(Fault) {
    let written = try Written(reading: line)
    guard let clientText = written[.client] else { throw .missing(.client) }
    guard let subjectText = written[.subject] else { throw .missing(.subject) }
    guard let subject = AppleSubject(subjectText) else { throw .malformed(.subject) }
    guard let client = ClientID(clientText) else { throw .malformed(.client) }
    guard let team = teams[client] else { throw .unknownClient }
    if let said = written[.team], said != team.text { throw .wrongTeam }
    guard let time = try written.time() else { throw .missing(.signedInAt) }
    guard time <= now else { throw .notYet }
    var tokens: [NewToken] = []
    if let text = written[.refreshToken] {
      guard let value = SecretToken(text) else { throw .malformed(.refreshToken) }
      tokens.append(NewToken(kind: .refresh, client: client, value: value))
    }
    (account, signedInAt, self.tokens) = (Account(team: team, subject: subject), time, tokens)
  }

  /// The members as they were written.
  private struct Written {
    private var texts: [Fault.Member: String] = [:]
    private var seconds: Int64?

    init(reading line: [UInt8]) throws(Fault) {
      var (texts, seconds) = ([Fault.Member: String](), nil as Int64?)
      var fault: Fault?
      do {
        try unsafe JSONReader.read(line.span.bytes, ImportedAccount.limits) { reader throws(JSONError) in
          try reader.readObject { name, value throws(JSONError) in
            guard let member = Fault.Member(rawValue: name) else { return fault = fault ?? .unknownMember }
            switch try value.kind {
            case .string: texts[member] = try value.readString()
            case .number where member == .signedInAt:
              do throws(JSONError) {
                seconds = try value.readInteger()
              } catch {
                guard error.code == .notAnInteger else { throw error }
                fault = fault ?? .malformed(member)
              }
            // As databases write what is not there.
            case .null where member == .refreshToken || member == .team: break
            default: fault = fault ?? .malformed(member)
            }
          }
        }
      } catch {
        throw .malformedLine
      }
      if let fault { throw fault }
      (self.texts, self.seconds) = (texts, seconds)
    }

    subscript(member: Fault.Member) -> String? { texts[member] }

    func time() throws(Fault) -> Timestamp? {
      let time: Timestamp?
      if let seconds {
        time = Timestamp(seconds: seconds)
      } else if let text = texts[.signedInAt] {
        time = Timestamp(rfc3339: text)
      } else {
        return nil
      }
      guard let time else { throw .malformed(.signedInAt) }
      return time
    }
  }
}
