package import AccountEvents
import JSON

/// Who a user is at the team that receives an app.
package struct TransferredUser: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The user at the receiving team: the same that identity tokens have from now on.
  package let subject: AppleSubject
  /// The address at the receiving team; nil where the user has none of Apple's private relay.
  package let address: RelayAddress?
  /// Whether the address is one of Apple's private relay.
  package let isPrivate: Bool

  /// A user from their parts.
  package init(subject: AppleSubject, address: RelayAddress?, isPrivate: Bool) {
    (self.subject, self.address, self.isPrivate) = (subject, address, isPrivate)
  }

  /// Says that there is a user, and not who it is.
  package var description: String { "«transferred user»" }
  /// Nothing of the user for `dump`, nor for the interpolation of what contains it.
  package var customMirror: Mirror { Mirror(self, children: []) }

  /// Reads the body of an answer to the receiving team.
  init(reading body: [UInt8]) throws(AppleTokenError) {
    var subject: String?, email: String?, isPrivate = false
    try body.readMigrationAnswer { name, value throws(JSONError) in
      switch name {
      case "sub": subject = try value.readString()
      case "email": email = try value.readString()
      case "is_private_email": isPrivate = try value.readWrittenBoolean()
      default: break
      }
    }
    guard let subject = subject.flatMap(AppleSubject.init) else {
      throw AppleTokenError(.malformedAnswer, "no subject")
    }
    // As in an identity token, that of a Managed Apple Account may be empty.
    let address = email.flatMap { $0.isEmpty ? nil : RelayAddress($0) }
    guard address != nil || email?.isEmpty != false else {
      throw AppleTokenError(.malformedAnswer, "an e-mail address that cannot be one")
    }
    self.init(subject: subject, address: address, isPrivate: isPrivate)
  }
}

extension TransferSubject {
  /// Reads the body of an answer to the sending team.
  init(reading body: [UInt8]) throws(AppleTokenError) {
    var text: String?
    try body.readMigrationAnswer { name, value throws(JSONError) in
      if name == "transfer_sub" { text = try value.readString() }
    }
    guard let subject = text.flatMap(TransferSubject.init) else {
      throw AppleTokenError(.malformedAnswer, "no transfer identifier")
    }
    self = subject
  }
}

extension [UInt8] {
  /// Reads an object member by member. Of what it holds nothing is in an error.
  fileprivate func readMigrationAnswer(
    _ read: (String, inout JSONReader) throws(JSONError) -> Void
  ) throws(AppleTokenError) {
    do throws(JSONError) {
      try unsafe JSONReader.read(span.bytes, JSONLimits(bytes: GrantedTokens.maximumSize, depth: 8, members: 32)) {
        reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in try read(name, &value) }
      }
    } catch {
      throw AppleTokenError(.malformedAnswer, "the user is \(error)")
    }
  }
}
