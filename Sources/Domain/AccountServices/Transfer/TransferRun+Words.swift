package import AccountEvents
package import AccountStore
package import AppleID
package import EventLoop

extension TransferRun {
  /// A time in which nobody is asked, as Apple fails or asks for it.
  package struct Rest: Sendable, Hashable {
    /// When it ends.
    package let until: MonotonicTime
    /// Apple's last answer that was none.
    package let code: AppleTokenError.Code
  }
}

extension TransferRun.Rest {
  /// Why nobody is asked, and for how many seconds from that moment on.
  package func words(at time: MonotonicTime) -> String {
    "Apple answers \(code.rawValue): nobody is asked for \((until - time + .milliseconds(999)).components.seconds) s"
  }
}

extension TransferRun.Ending {
  /// What an operator has to know, and does next; nil where all went well. `keys` are those that are configured for a team.
  package func words(of plan: TransferPlan, keys: (TeamID) -> [KeyID], at time: Timestamp) -> String? {
    let (app, team, other) = (plan.client.text, plan.team.text, plan.otherTeam.text)
    switch self {
    case .complete, .ended: return nil
    case .leaseLost: return "another process has taken over the plan \(plan.name)"
    case .planGone: return "the plan \(plan.name) was removed meanwhile"
    case .notAccepted:
      return
        "the transfer of \(app) is \(TransferWindow(plan).words(at: time)). Before it is accepted, Apple exchanges "
        + "nothing: only the sending team can do something, and have identifiers generated"
    case .windowOver: return "the 60 days are \(TransferWindow(plan).words(at: time))"
    case .appleFails(let error): return "Apple answers nothing that can be used: \(error)"
    case .misconfigured(let error, let team):
      return error.words(of: plan, in: team, keys: keys) ?? "Apple answers nothing that can be used: \(error)"
    case .allRefused:
      return """
        Apple refuses one user after the other (invalid_request) and says nothing of anybody else, and nothing was concluded \
        from that: they wait as before. Is \(other) the other team, and is the transfer of \(app) under way or accepted? Are \
        these users of \(app) at \(plan.side == .sending ? team : other)? If they really have all withdrawn consent, or never \
        were users of \(app): --believe-refusals
        """
    case .useless:
      return """
        what Apple answers is of no use: what it was asked with, the same for different users, or nothing that the other team \
        gets an account for. That is what comes of a wrong recipient. Is \(other) the team that \
        \(plan.side == .sending ? "gets" : "has had") \(app)? Nothing that was in doubt was written down
        """
    case .allConflicts:
      return """
        users came to accounts that others of the plan have, or that had come as somebody else, one after the other. Were \
        identifiers handed over by two keys, or mixed up on the way? `siwa migrate status \(plan.name) --refused` lists them. \
        If each of them is a conflict of its own: --believe-conflicts
        """
    case .store(let error): return "\(error)"
    }
  }
}

extension AppleTokenError {
  /// Which of key, app and team of a plan it is, where Apple was asked in the name of `team`; nil where time alone may help.
  package func words(of plan: TransferPlan, in team: TeamID, keys: (TeamID) -> [KeyID]) -> String? {
    guard needsOperator else { return nil }
    let (app, keys) = (plan.client.text, keys(team).map(\.text).joined(separator: " or "))
    return words(app: app, team: team.text, key: keys.isEmpty ? "its key" : "key \(keys)")
  }

  private func words(app: String, team: String, key: String) -> String {
    switch code {
    case .noKey:
      return "no key: none of team \(team) is configured: set teams.\(team).key-id and teams.\(team).private-key"
    case .unsigned: return "the key: \(key) of team \(team) does not sign: \(detail)"
    case .invalidClient:
      return
        "wrong key, team or app, of which Apple says the same (invalid_client): it does not take \(key) as one of team \(team) "
        + "for \(app). Key: compare teams.\(team).key-id with the key at Apple, and the .p8 file with its download. Team: is "
        + "\(team) the one that the key is of, and that has the app, or had it in the 60 days? App: is \(app) its bundle ID or "
        + "Services ID? \(detail)"
    case .unauthorizedClient:
      return
        "wrong app: Apple does not let \(app), with \(key) of team \(team), ask for its users. Is \(app) the app's "
        + "bundle ID or Services ID, and does Sign in with Apple stand on it: \(detail)"
    case .invalidScope, .forbidden:
      return
        "wrong team: Apple does not let team \(team) move users of \(app) (scope user.migration). Is it one of the two "
        + "teams of the transfer: \(detail)"
    case .certificate:
      return "what answers in Apple's place is not Apple, by its certificate: see apple.trusted-ca and apple.proxy: "
        + detail
    default: return "Apple takes no request of \(app) from team \(team) with \(key): \(self)"
    }
  }
}
