import COpenSSL

/// SHA-256 of a message that comes piece by piece, such as a file of any size.
@safe
public struct SHA256Hasher: ~Copyable {
  // Owned: freed with the value.
  private let context: OpaquePointer

  /// Of nothing so far.
  public init() {
    guard let context = unsafe EVP_MD_CTX_new(), unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
      preconditionFailure("OpenSSL has no SHA-256: its default provider is missing")
    }
    unsafe self.context = context
  }

  deinit { unsafe EVP_MD_CTX_free(context) }

  /// Takes the next piece.
  public mutating func update(_ piece: RawSpan) {
    let isTaken = unsafe piece.withUnsafeBytes { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) == 1 }
    precondition(isTaken, "a digest takes whatever there is")
  }

  /// The digest of all pieces.
  public consuming func finish() -> SHA256Digest {
    unsafe SHA256Digest { place in unsafe EVP_DigestFinal_ex(context, place, nil) == 1 }
  }
}
