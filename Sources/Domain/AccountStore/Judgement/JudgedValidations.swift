import AccountEvents

/// A refresh token that a database holds of an account, as far as a judgement needs it.
struct HeldCredential {
  /// What tells its row from all others.
  struct Place: Hashable {
    let hash: AccountHash
    let client: ClientID
    let fingerprint: [UInt8]
  }

  let place: Place
  let issuedAt: Timestamp
  var isInvalid: Bool
}

/// Findings about tokens, judged one after the other by what the database had and those before have come to.
///
/// An authorization is over where no token of it is left that is not known to be invalid: one that nobody has asked about
/// yet, or that came of a younger sign-in, keeps the finding back. So what the event ends was found dead, each of it, and a
/// sign-in that the store learns of later is younger than the event.
struct JudgedValidations {
  /// A token that is as due as it was.
  struct Release {
    let place: HeldCredential.Place
    let claimedAt: Timestamp
    let claimedBefore: Timestamp?
  }

  private(set) var good: [HeldCredential.Place] = []
  private(set) var invalid: [HeldCredential.Place] = []
  private(set) var released: [Release] = []
  private(set) var events: [SealedOutboxRecord] = []
  private(set) var outcomes: [RecordedValidation] = []

  /// Judges findings; `held` are the refresh tokens of the accounts of those that say that a token is invalid.
  init(
    _ validations: [TokenValidation], held: [HeldCredential], at time: Timestamp, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    var accounts = Dictionary(grouping: held, by: \.place.hash)
    for validation in validations {
      let token = validation.token
      let place = HeldCredential.Place(
        hash: keys.hash(of: token.account), client: token.client, fingerprint: keys.fingerprint(of: token.value))
      switch validation.finding {
      case .good:
        good.append(place)
        outcomes.append(.noted)
      case .notAsked:
        released.append(Release(place: place, claimedAt: token.claimedAt, claimedBefore: token.claimedBefore))
        outcomes.append(.noted)
      case .invalid(let id, let clients):
        var tokens = accounts[place.hash] ?? []
        guard
          let index = tokens.firstIndex(where: {
            $0.place == place && !$0.isInvalid && $0.issuedAt == token.issuedAt
          })
        else {
          outcomes.append(.gone)
          continue
        }
        tokens[index].isInvalid = true
        accounts[place.hash] = tokens
        invalid.append(place)
        let concerned = tokens.filter { clients.contains($0.place.client) || $0.place.client == token.client }
        guard concerned.allSatisfy(\.isInvalid) else {
          outcomes.append(.covered)
          continue
        }
        let end = concerned.map(\.issuedAt).max() ?? token.issuedAt
        events.append(try keys.seal(id, token, upTo: end, foundAt: time))
        outcomes.append(.published)
      }
    }
  }
}

extension StoreKeys {
  /// The event that an authorization is over that the person gave at `end` or before, with the code that vouches for it.
  fileprivate func seal(
    _ id: EventID, _ token: DueToken, upTo end: Timestamp, foundAt time: Timestamp
  ) throws(AccountStoreError) -> SealedOutboxRecord {
    let event = AccountEvent(
      id: id, team: token.account.team, audience: token.client, subject: token.account.subject,
      kind: .credentialInvalid, occurredAt: end, issuedAt: time)
    return try seal(event, of: self.id(of: token.account), at: time)
  }
}
