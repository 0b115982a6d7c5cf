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

/// What a database has of an account that is another one's relative.
struct RelativeFacts {
  /// Its row; nil where there is none.
  var row: SealedAccount?
  /// Who it is by the plan of a transfer, where there is no row.
  var planned: Account?
  /// What is known of it, and of mail to it.
  var relay = RelayFacts(relay: nil, account: AccountFacts())
  /// The apps of which a token is held that is not known to be invalid.
  var apps: Set<ClientID> = []
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

  /// Those whom events are told of, by what a database has.
  init(
    _ links: AccountLinks, _ facts: [AccountID: RelativeFacts], of events: [EventReference], _ keys: StoreKeys
  ) throws(AccountStoreError) {
    for event in events {
      let id = keys.id(of: event.account)
      if let link = links.successors[id] {
        successors[event.hash] = try Relative(link, facts[link.account] ?? RelativeFacts(), keys)
      }
      if let link = links.predecessors[id] {
        predecessors[event.hash] = try Relative(link, facts[link.account] ?? RelativeFacts(), keys)
      }
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
  var tellsRelatives: Bool {
    changes.contains { change in
      switch change {
      case .tellSuccessor, .tellPredecessor: true
      case .setRelay, .removeRelay, .endTokens, .noteOwnRevocation, .eraseAccount, .fenceAccount: false
      }
    }
  }
}
