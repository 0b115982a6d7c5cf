import AccountEvents

/// How another account is the same person's as one is: which app they came with when it changed teams.
struct AccountLink: Hashable {
  /// The other account.
  let account: AccountID
  /// The app.
  let client: ClientID
  /// When the two were joined.
  let joinedAt: Timestamp
}

/// What accounts have become when an app changed teams, and what they were before.
struct AccountLinks: Equatable {
  private(set) var successors: [AccountID: AccountLink] = [:]
  private(set) var predecessors: [AccountID: AccountLink] = [:]

  /// Adds that an account was another one before.
  mutating func add(_ account: AccountID, from former: AccountID, with client: ClientID, at time: Timestamp) {
    successors[former] = AccountLink(account: account, client: client, joinedAt: time)
    predecessors[account] = AccountLink(account: former, client: client, joinedAt: time)
  }

  /// The accounts at both ends.
  var accounts: Set<AccountID> {
    Set(successors.values.map(\.account)).union(predecessors.values.map(\.account))
  }
}

/// Of which accounts it has to be known what they have become, or what they were before.
struct LinkQuestion {
  let successors: [AccountID]
  let predecessors: [AccountID]

  /// How many times an app may have changed teams since what is told of mail: what would go farther stays there.
  static let mostSteps = 16

  /// What settlements ask.
  init(_ settlements: [Settlement], _ keys: StoreKeys) {
    successors = settlements.filter(\.tellsSuccessor).map { keys.id(of: $0.event) }
    predecessors = settlements.filter(\.tellsPredecessor).map { keys.id(of: $0.event) }
  }
}

/// What a database has of an account that is another one's relative.
struct RelativeFacts {
  /// Its row; nil where there is none.
  var row: SealedAccount?
  /// Who it is by the plan of a transfer, where there is no row.
  var planned: Account?
  /// What is known of it, and of mail to it.
  var relay = RelayFacts(relay: nil, account: AccountFacts())
  /// The apps of which a token is held that is not known to be invalid, and when the newest of each was issued.
  var apps: [ClientID: Timestamp] = [:]
}

/// Another account of the person whom an event is about.
struct Relative {
  let link: AccountLink
  let hash: AccountHash
  let facts: RelativeFacts
  /// Who it is; nil where nothing says that any more.
  let account: Account?

  init(_ link: AccountLink, _ facts: RelativeFacts, _ keys: StoreKeys) throws(AccountStoreError) {
    (self.link, self.facts, hash) = (link, facts, keys.hash(of: link.account))
    account = try facts.row?.accountIfWhole(keys) ?? facts.planned
  }
}

/// The other accounts of those whom events are about, by the hashes of these.
struct Relatives {
  private(set) var successors: [AccountHash: Relative] = [:]
  private(set) var predecessors: [AccountHash: Relative] = [:]

  /// Nobody.
  init() {}

  /// Those of whom settlements say something, by what a database has.
  init(
    _ links: AccountLinks, _ facts: [AccountID: RelativeFacts], of settlements: [Settlement], _ keys: StoreKeys
  ) throws(AccountStoreError) {
    for settlement in settlements where settlement.tellsRelatives {
      let event = settlement.event
      let id = keys.id(of: event)
      var (former, hash) = (id, event.hash)
      while successors[hash] == nil, let link = links.successors[former] {
        let relative = try Relative(link, facts[link.account] ?? RelativeFacts(), keys)
        successors[hash] = relative
        (former, hash) = (link.account, relative.hash)
      }
      if let link = links.predecessors[id] {
        predecessors[event.hash] = try Relative(link, facts[link.account] ?? RelativeFacts(), keys)
      }
    }
  }
}

/// Settlements, and right behind each those that follow from it for mail to the accounts that the person has had since: each
/// is judged as if the event had happened to that account, and only where the one before it was applied.
struct LinkedSettlements {
  private(set) var all: [Settlement] = []
  /// The places of those that follow from the one before, and the app that the person has come with.
  private(set) var followers: [Int: ClientID] = [:]

  init(_ settlements: [Settlement], _ relatives: Relatives, _ keys: StoreKeys) throws(AccountStoreError) {
    guard !relatives.successors.isEmpty else {
      all = settlements
      return
    }
    for settlement in settlements {
      all.append(settlement)
      var last = settlement
      // Bounded where accounts have become each other.
      for _ in 0..<LinkQuestion.mostSteps {
        guard let successor = relatives.successors[last.event.hash],
          let follower = try last.follower(for: successor, keys)
        else { break }
        followers[all.count] = successor.link.client
        all.append(follower)
        last = follower
      }
    }
  }
}

extension Settlement {
  /// What follows for mail to the account that the person has now; nil where nothing does.
  fileprivate func follower(for successor: Relative, _ keys: StoreKeys) throws(AccountStoreError) -> Settlement? {
    guard let outcome, let account = successor.account else { return nil }
    for change in changes {
      guard case .tellSuccessorOfMail(let said, let client) = change, client == successor.link.client else { continue }
      let known = try successor.facts.relay.stateIfWhole(of: successor.hash, with: keys)
      // What was assumed when the two were joined is less than what Apple says.
      if let known, known.since >= said.since, known.since != successor.link.joinedAt { return nil }
      let state = RelayState(
        status: said.status, address: known?.address, isPrivate: known?.isPrivate ?? said.isPrivate, since: said.since)
      let following = EventReference(
        id: .ofOurOwn("mail", Array(event.id.text.utf8) + successor.link.account.bytes), account: account,
        hash: successor.hash, occurredAt: event.occurredAt, origin: event.origin, weight: event.weight,
        yieldsTo: event.yieldsTo)
      return Settlement(
        of: following, by: consumer, outcome: outcome,
        changes: [.setRelay(state), .tellSuccessorOfMail(state, of: client)])
    }
    return nil
  }
}

extension RelayFacts {
  /// What is known of mail; nil also where that does not open.
  func stateIfWhole(of hash: AccountHash, with keys: StoreKeys) throws(AccountStoreError) -> RelayState? {
    do throws(AccountStoreError) {
      guard case .known(let state) = try knowledge(of: hash, with: keys) else { return nil }
      return state
    } catch {
      guard error.code == .sealBroken || error.code == .damaged else { throw error }
      return nil
    }
  }
}

extension SealedAccount {
  /// Whose row it is; nil where it does not open.
  fileprivate func accountIfWhole(_ keys: StoreKeys) throws(AccountStoreError) -> Account? {
    do throws(AccountStoreError) {
      return try open(with: keys).account
    } catch {
      guard error.code == .sealBroken || error.code == .damaged else { throw error }
      return nil
    }
  }
}

extension Settlement {
  /// Whether something is said of another account of the person.
  var tellsRelatives: Bool { tellsSuccessor || tellsPredecessor }

  /// Whether something is said of the account that this one has become.
  fileprivate var tellsSuccessor: Bool {
    changes.contains { change in
      switch change {
      case .tellSuccessor, .tellSuccessorOfMail: true
      case .tellPredecessor, .setRelay, .removeRelay, .endTokens, .noteOwnRevocation, .eraseAccount, .fenceAccount:
        false
      }
    }
  }

  /// Whether something is said of the account that this one was before.
  fileprivate var tellsPredecessor: Bool {
    changes.contains { change in if case .tellPredecessor = change { true } else { false } }
  }
}
