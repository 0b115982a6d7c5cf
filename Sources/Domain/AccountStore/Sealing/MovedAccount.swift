import AccountEvents
import Cryptography

/// An account's row as its move to another hash leaves it, and what reseals the values that belong to it.
///
/// What does not open moves as it is: `verify` names it afterwards as it did before, and it keeps nothing else from moving.
struct MovedAccount {
  /// The row under the new hash.
  let row: SealedAccount
  private let former: AccountHash
  private let cipher: AES256GCM?

  /// The move of a row; its data key stays, wrapped anew for the new hash.
  init(_ row: SealedAccount, to hash: AccountHash, _ keys: StoreKeys) throws(AccountStoreError) {
    var (key, cipher) = (row.key, nil as AES256GCM?)
    do throws(AccountStoreError) {
      let bytes = try keys.master.unwrap(row.key.bytes, from: .dataKey(of: row.hash), ofKey: row.key.masterKeyID)
      cipher = try AES256GCM(unwrapped: bytes)
      key = AccountFacts.WrappedKey(
        bytes: try keys.master.wrap(bytes, for: .dataKey(of: hash)), masterKeyID: keys.master.id)
    } catch {
      // With another master key it may open still.
      guard error.code == .sealBroken || error.code == .damaged else { throw error }
    }
    (former, self.cipher) = (row.hash, cipher)
    self.row = SealedAccount(
      hash: hash, team: row.team,
      subject: try Self.reseal(row.subject, from: .subject(of: row.hash), to: .subject(of: hash), with: cipher),
      key: key, signedInAt: row.signedInAt)
  }

  /// The address, sealed for the new hash.
  func resealed(address: [UInt8]) throws(AccountStoreError) -> [UInt8] {
    try Self.reseal(address, from: .address(of: former), to: .address(of: row.hash), with: cipher)
  }

  /// The value of a token, sealed for the new hash.
  func resealed(_ token: SealedToken) throws(AccountStoreError) -> [UInt8] {
    try Self.reseal(
      token.value, from: .token(of: former, token.kind, token.client),
      to: .token(of: row.hash, token.kind, token.client), with: cipher)
  }

  private static func reseal(
    _ value: [UInt8], from place: SealedPlace, to other: SealedPlace, with cipher: AES256GCM?
  ) throws(AccountStoreError) -> [UInt8] {
    guard let cipher else { return value }
    do throws(AccountStoreError) {
      return try cipher.seal(try cipher.open(value, from: place), for: other)
    } catch {
      guard error.code == .sealBroken else { throw error }
      return value
    }
  }
}
