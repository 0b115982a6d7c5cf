import AccountEvents
import Cryptography

/// A plan of a transfer as it is kept, with the data key of all that is kept of its users: whoever removes the plan
/// destroys that.
struct SealedTransferPlan {
  /// What its users' rows name it.
  let number: Int64
  let plan: TransferPlan
  /// The number of the user who was added last; one who is gone leaves theirs to nobody.
  let lastUser: Int64
  /// Both are empty once the plan is being removed.
  let masterKeyID: String
  let dataKey: [UInt8]

  /// A plan as a database has it.
  init(number: Int64, _ plan: TransferPlan, lastUser: Int64, masterKeyID: String, dataKey: [UInt8]) {
    var plan = plan
    plan.isBeingRemoved = dataKey.isEmpty
    (self.number, self.plan, self.lastUser) = (number, plan, lastUser)
    (self.masterKeyID, self.dataKey) = (masterKeyID, dataKey)
  }

  /// How many users are removed in one transaction.
  static let removal: Int64 = 5000

  /// Opens its data key.
  func open(with keys: StoreKeys) throws(AccountStoreError) -> OpenTransferPlan {
    let key = try keys.master.unwrap(dataKey, from: .transferPlan(plan), ofKey: masterKeyID)
    return OpenTransferPlan(row: self, cipher: try AES256GCM(unwrapped: key), keys: keys)
  }
}

/// A plan whose users' rows can be read and written.
struct OpenTransferPlan {
  let row: SealedTransferPlan
  fileprivate let cipher: AES256GCM
  let keys: StoreKeys

  var plan: TransferPlan { row.plan }

  /// The row of a user, sealed.
  func row(
    of person: TransferPerson, _ number: Int64, _ state: TransferUser.State = .waiting
  ) throws(AccountStoreError) -> TransferRow {
    var row = TransferRow(number: number, state: state, person: [])
    try seal(person, into: &row)
    return row
  }

  /// Writes into a row who the user is.
  func seal(_ person: TransferPerson, into row: inout TransferRow) throws(AccountStoreError) {
    row.account = person.subject.map { keys.id(of: Account(team: plan.team, subject: $0)) }
    row.identifier = person.transferSubject.map { keys.fingerprint(of: $0) }
    row.person = try cipher.seal(person.parts.packed, for: .transferUser(row.number))
  }

  /// The row of a conflict with what was decided about it; nil of a user who is in none.
  func row(_ row: TransferRow, with decision: TransferDecision) throws(AccountStoreError) -> TransferRow? {
    guard row.state == .conflict else { return nil }
    var (person, decided) = (try open(row), row)
    person.decision = decision
    try seal(person, into: &decided)
    return decided
  }

  /// Who a row is of; that has to be whom its columns speak of.
  func open(_ row: TransferRow) throws(AccountStoreError) -> TransferPerson {
    let bytes = try cipher.open(row.person, from: .transferUser(row.number))
    guard let person = [[UInt8]](packed: bytes).flatMap(TransferPerson.init(parts:)),
      person.subject.map({ keys.id(of: Account(team: plan.team, subject: $0)) }) == row.account,
      person.transferSubject.map({ keys.fingerprint(of: $0) }) == row.identifier
    else { throw AccountStoreError(.damaged, "the row belongs to another user") }
    return person
  }

  /// The user of a row; nil where the row does not open.
  func personIfWhole(_ row: TransferRow) throws(AccountStoreError) -> TransferPerson? {
    do throws(AccountStoreError) {
      return try open(row)
    } catch {
      guard error.code == .sealBroken || error.code == .damaged else { throw error }
      return nil
    }
  }

  /// The users of rows. One whose row does not open has no key and the reason `damaged`: nobody else waits for them.
  func users(_ rows: [TransferRow]) throws(AccountStoreError) -> [TransferUser] {
    try rows.map { row throws(AccountStoreError) in
      let person = try personIfWhole(row)
      var user = TransferUser(
        number: row.number, key: person?.key ?? "", subject: person?.subject, transferSubject: person?.transferSubject,
        state: row.state)
      user.reason = person == nil ? .damaged : row.reason
      (user.address, user.isPrivate) = (person?.address, person?.isPrivate ?? false)
      user.hasSignedIn = row.hasSignedIn
      user.decision = row.state == .conflict ? person?.decision : nil
      return user
    }
  }
}

/// A user of a plan as a row keeps them.
struct TransferRow {
  let number: Int64
  var state: TransferUser.State
  var reason: TransferRefusal?
  /// The account at our team.
  var account: AccountID?
  /// The code of the transfer identifier.
  var identifier: [UInt8]?
  var hasSignedIn = false
  /// All that names the person, sealed.
  var person: [UInt8]
}

/// All that names a user of a plan.
struct TransferPerson {
  let key: String
  var subject: AppleSubject?
  var transferSubject: TransferSubject?
  var address: RelayAddress?
  var isPrivate = false
  var decision: TransferDecision?

  init(_ user: NewTransferUser) { (key, subject, transferSubject) = (user.key, user.subject, user.transferSubject) }

  init(key: String, subject: AppleSubject?) { (self.key, self.subject) = (key, subject) }

  /// In the order in which they are packed; none of them is empty but what is not there. Behind the first five there are
  /// those of a decision, if there is one.
  fileprivate var parts: [[UInt8]] {
    let named: [[UInt8]] = [
      Array(key.utf8), Array((subject?.text ?? "").utf8), Array((transferSubject?.text ?? "").utf8),
      Array((address?.text ?? "").utf8), [isPrivate ? 1 : 0],
    ]
    return named + (decision?.parts ?? [])
  }

  fileprivate init?(parts: [[UInt8]]) {
    let texts = parts.prefix(4).compactMap { String(opened: $0) }
    guard parts.count >= 5, texts.count == 4 else { return nil }
    if parts.count > 5 {
      guard let decision = TransferDecision(parts: Array(parts[5...])) else { return nil }
      self.decision = decision
    }
    key = texts[0]
    (subject, transferSubject) = (AppleSubject(texts[1]), TransferSubject(texts[2]))
    (address, isPrivate) = (RelayAddress(texts[3]), parts[4] == [1])
  }
}

extension TransferDecision {
  fileprivate var parts: [[UInt8]] {
    [choice.rawValue, person, reason, "\(time.milliseconds)"].map { Array($0.utf8) }
  }

  fileprivate init?(parts: [[UInt8]]) {
    let texts = parts.compactMap { String(opened: $0) }
    guard parts.count == 4, texts.count == 4, let choice = Choice(rawValue: texts[0]),
      let time = Int64(texts[3]).flatMap({ Timestamp(milliseconds: $0) })
    else { return nil }
    self.init(choice, by: texts[1], because: texts[2], at: time)
  }
}

extension StoreKeys {
  /// A new plan, with a data key of its own.
  func seal(_ plan: TransferPlan) throws(AccountStoreError) -> SealedTransferPlan {
    SealedTransferPlan(
      number: 0, plan, lastUser: 0, masterKeyID: master.id,
      dataKey: try master.wrap(Self.newKey(), for: .transferPlan(plan)))
  }

  /// Tells transfer identifiers apart without opening them: the same for as long as there is the store. An account's name
  /// has a slash behind its first ten letters, and a token a colon behind its first five.
  func fingerprint(of identifier: TransferSubject) -> [UInt8] {
    hashing.lastingCode(for: Array("transfer identifier:".utf8) + identifier.text.utf8)
  }

  /// Where the rows of the account with this id stand.
  func hash(of id: AccountID) -> AccountHash { hashing.newest(of: id) }
}

extension StoreReport {
  /// Opens a plan; nil where it does not open.
  mutating func open(_ row: SealedTransferPlan, _ keys: StoreKeys) throws(AccountStoreError) -> OpenTransferPlan? {
    do throws(AccountStoreError) {
      return try row.open(with: keys)
    } catch {
      note("the transfer \(row.plan.name): \(error.detail)")
      return nil
    }
  }

  /// Opens users of a plan.
  mutating func note(_ rows: [TransferRow], of plan: OpenTransferPlan) {
    transferUsers += rows.count
    for row in rows {
      do throws(AccountStoreError) { _ = try plan.open(row) } catch {
        note("user \(row.number) of the transfer \(plan.plan.name): \(error.detail)")
      }
    }
  }
}

extension AccountStoreError {
  /// There is no such plan, or another one of that name by now.
  static func noPlan(_ plan: TransferPlan) -> AccountStoreError {
    AccountStoreError(.failed, "there is no plan \(plan.name) of a transfer, or it is another one by now")
  }

  /// All that is left to do is to remove it.
  static func beingRemoved(_ plan: TransferPlan) -> AccountStoreError {
    AccountStoreError(.failed, "the plan \(plan.name) of a transfer is being removed: siwa migrate remove ends that")
  }

  /// Accounts have no order to be read in.
  static let movingAccounts = AccountStoreError(
    .unavailable, "its hashing key is being replaced: accounts can be added once that is over")

  /// Our own mistake: nothing of the other side belongs into a plan.
  static let otherSide = AccountStoreError(.failed, "a user or an answer of the other side of a transfer")
}

/// Accounts of a store that are to be users of a plan.
struct AccountPage {
  /// Those who are not erased and whose rows open, which have the accounts' ids for keys; `siwa store integrity` names the
  /// others.
  private(set) var people: [TransferPerson] = []
  /// The last account; nil where there are no more.
  private(set) var end: AccountID?

  /// Opens rows, of which `limit` were asked for.
  init(
    opening rows: [(account: SealedAccount, facts: AccountFacts)], limit: Int, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    var last: AccountID?
    for row in rows {
      do throws(AccountStoreError) {
        let account = try row.account.open(with: keys).account
        let id = keys.id(of: account)
        last = id
        if !row.facts.isErased { people.append(TransferPerson(key: id.description, subject: account.subject)) }
      } catch {
        guard error.code == .sealBroken || error.code == .damaged else { throw error }
        if keys.generation == 1 { last = AccountID(bytes: row.account.hash.bytes) }
      }
    }
    guard rows.count == limit else { return }
    guard let last else { throw AccountStoreError(.damaged, "\(limit) accounts do not open: ask siwa store integrity") }
    end = last
  }
}
