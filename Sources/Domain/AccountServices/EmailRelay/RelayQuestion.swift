import AccountEvents
import JSON

/// The body of a question about many accounts.
enum RelayQuestion {
  /// The accounts that it names; nil where it is malformed, or names none or too many.
  static func accounts(in body: RawSpan) -> [Account]? {
    do throws(JSONError) {
      let limits = JSONLimits(bytes: body.byteCount, depth: 4, members: 2 * RelayEndpoint.mostAccounts + 1)
      let accounts = try JSONReader.read(body, limits) { reader throws(JSONError) in
        var accounts: [Account]?
        try reader.readObject { name, value throws(JSONError) in
          guard name == "accounts" else { throw JSONError(.malformed, at: value.offset) }
          var list: [Account] = []
          try value.readArray { value throws(JSONError) in
            list.append(try account(in: &value))
            if list.count > RelayEndpoint.mostAccounts { throw JSONError(.malformed, at: value.offset) }
          }
          accounts = list
        }
        return accounts
      }
      return accounts?.isEmpty == false ? accounts : nil
    } catch {
      return nil
    }
  }

  private static func account(in value: inout JSONReader) throws(JSONError) -> Account {
    var team: TeamID?
    var subject: AppleSubject?
    let start = value.offset
    try value.readObject { name, value throws(JSONError) in
      switch name {
      case "team": team = TeamID(try value.readString())
      case "sub": subject = AppleSubject(try value.readString())
      default: throw JSONError(.malformed, at: value.offset)
      }
    }
    guard let team, let subject else { throw JSONError(.malformed, at: start) }
    return Account(team: team, subject: subject)
  }
}
