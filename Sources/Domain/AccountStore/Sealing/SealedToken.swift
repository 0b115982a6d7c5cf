import AccountEvents
import Cryptography

/// A token as it is kept.
struct SealedToken {
  let kind: NewToken.Kind
  let client: ClientID
  let issuedAt: Timestamp
  let value: [UInt8]
  var marks = ValidationMarks()

  /// The text of a token of the account's, sealed.
  static func seal(
    _ token: NewToken, of hash: AccountHash, with key: AES256GCM
  ) throws(AccountStoreError) -> [UInt8] {
    try key.seal(Array(token.value.text.utf8), for: .token(of: hash, token.kind, token.client))
  }

  /// Opens it as one of the account's.
  func opened(of hash: AccountHash, with key: AES256GCM) throws(AccountStoreError) -> StoredToken {
    let text = try key.open(value, from: .token(of: hash, kind, client))
    guard let value = String(opened: text).flatMap(SecretToken.init) else {
      throw AccountStoreError(.damaged, "a token: not of the form in which it was written")
    }
    var token = StoredToken(NewToken(kind: kind, client: client, value: value), issuedAt: issuedAt)
    token.marks = marks
    return token
  }
}
