import AccountEvents
import Cryptography

/// A token that is given out to be validated, as it is kept.
struct SealedDueToken {
  let token: SealedToken
  let claimedBefore: Timestamp?
  let account: SealedAccount
}

extension ClaimedTokens {
  /// Opens what was given out. What does not open is counted: it must not keep all others from being validated.
  init(
    opening rows: [SealedDueToken], claimedAt time: Timestamp, _ keys: StoreKeys
  ) throws(AccountStoreError) {
    self.init()
    for row in rows {
      do throws(AccountStoreError) {
        let (cipher, account) = try row.account.open(with: keys)
        let token = try row.token.opened(of: row.account.hash, with: cipher)
        tokens.append(
          DueToken(
            account: account, client: token.token.client, value: token.token.value, issuedAt: token.issuedAt,
            claimedAt: time, claimedBefore: row.claimedBefore))
      } catch {
        guard error.code == .sealBroken || error.code == .damaged else { throw error }
        damaged += 1
      }
    }
  }
}

extension Lease {
  /// The same, for as long again.
  func renewed(at time: Timestamp) -> Lease {
    Lease(name: name, holder: holder, until: (time + Self.length).milliseconds)
  }
}

extension [TokenValidation] {
  /// The accounts of tokens that are not good, each once.
  func hashesOfInvalid(_ keys: StoreKeys) -> Set<AccountHash> {
    var hashes: Set<AccountHash> = []
    for validation in self {
      if case .invalid = validation.finding { hashes.insert(keys.hash(of: validation.token.account)) }
    }
    return hashes
  }
}
