import AccountEvents
import Cryptography

/// An account as it is kept.
struct SealedAccount {
  let hash: AccountHash
  let team: String
  let subject: [UInt8]
  let key: AccountFacts.WrappedKey
  /// The last sign-in, where that is written with the row.
  var signedInAt: Timestamp?

  /// Opens its data key and its name, which must be the one that its hash stands for.
  func open(with keys: StoreKeys) throws(AccountStoreError) -> (cipher: AES256GCM, account: Account) {
    let key = try keys.dataKey(of: hash, self.key)
    let text = try key.open(subject, from: .subject(of: hash))
    guard let subject = String(opened: text).flatMap(AppleSubject.init),
      let team = TeamID(team), keys.isHash(hash, of: Account(team: team, subject: subject))
    else { throw AccountStoreError(.damaged, "the row belongs to another account") }
    return (key, Account(team: team, subject: subject))
  }
}

extension StoreKeys {
  /// A new data key for an account, and the row that keeps it.
  func makeDataKey(
    of account: Account, _ hash: AccountHash
  ) throws(AccountStoreError) -> (cipher: AES256GCM, row: SealedAccount) {
    let (cipher, wrapped) = try makeDataKey(of: hash)
    let subject = try cipher.seal(Array(account.subject.text.utf8), for: .subject(of: hash))
    let key = AccountFacts.WrappedKey(bytes: wrapped, masterKeyID: master.id)
    return (cipher, SealedAccount(hash: hash, team: account.team.text, subject: subject, key: key))
  }
}
