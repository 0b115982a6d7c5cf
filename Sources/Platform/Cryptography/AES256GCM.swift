import COpenSSL
import Synchronization

/// AES-256 in Galois/Counter Mode (NIST SP 800-38D): what is sealed can neither be read nor changed without the key.
///
/// A sealed value also holds to where it belongs: what is `authenticating` it is not part of it, and has to be the same
/// when it is opened. Each sealing draws a nonce of its own at random, so one key should seal no more than 2^32 values.
public struct AES256GCM: Sendable {
  /// How many bytes a key has.
  public static let keySize = 32
  /// How many bytes a sealed value has beyond what is in it: the nonce before it, the tag behind it.
  public static let overhead = nonceSize + tagSize

  static let nonceSize = 12
  private static let tagSize = 16

  private let context: CipherContext

  /// A cipher with that key: `keySize` random bytes. Throws `.malformedKey` for another number of them.
  public init(key: [UInt8]) throws(CryptographyError) {
    guard key.count == Self.keySize else {
      throw CryptographyError(.malformedKey, "a key of \(key.count) bytes instead of \(Self.keySize)")
    }
    guard let context = CipherContext(key) else { throw CryptographyError(.sealingFailed) }
    self.context = context
  }

  /// The nonce, `plaintext` encrypted, and the tag.
  public func seal(_ plaintext: [UInt8], authenticating place: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try seal(
      plaintext, authenticating: place,
      nonce: try nonces.withLock { nonces throws(CryptographyError) in
        try nonces.draw()
      })
  }

  /// The same with a nonce that was chosen, and must never be used again with this key.
  func seal(
    _ plaintext: [UInt8], authenticating place: [UInt8], nonce: [UInt8]
  ) throws(CryptographyError) -> [UInt8] {
    precondition(nonce.count == Self.nonceSize)
    var sealed = [UInt8](repeating: 0, count: plaintext.count + Self.overhead)
    sealed.replaceSubrange(..<Self.nonceSize, with: nonce)
    let isSealed = unsafe context.use { context in
      unsafe sealed.withUnsafeMutableBytes { output in
        guard let output = unsafe output.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return false }
        var count: CInt = 0
        let text = unsafe output + Self.nonceSize
        return unsafe EVP_EncryptInit_ex2(context, nil, nil, nonce, nil) == 1
          && (place.isEmpty || EVP_EncryptUpdate(context, nil, &count, place, CInt(place.count)) == 1)
          && (plaintext.isEmpty || EVP_EncryptUpdate(context, text, &count, plaintext, CInt(plaintext.count)) == 1)
          && EVP_EncryptFinal_ex(context, text + plaintext.count, &count) == 1
          && EVP_CIPHER_CTX_ctrl(
            context, EVP_CTRL_AEAD_GET_TAG, CInt(Self.tagSize), text + plaintext.count) == 1
      }
    }
    guard isSealed else { throw CryptographyError(.sealingFailed) }
    return sealed
  }

  /// What was sealed with this key for the same place. Throws `.notAuthentic` for anything else, of whatever length.
  public func open(_ sealed: [UInt8], authenticating place: [UInt8]) throws(CryptographyError) -> [UInt8] {
    guard sealed.count >= Self.overhead else { throw CryptographyError(.notAuthentic, "too short") }
    // A copy to be opened where it is: the initializers that leave memory uninitialized, or fill it, look up a type at run
    // time, which takes longer.
    var text = unsafe sealed.withUnsafeBytes { sealed in
      unsafe Array(UnsafeRawBufferPointer(rebasing: sealed[Self.nonceSize..<sealed.count - Self.tagSize]))
    }
    let isAuthentic = unsafe context.use { context in
      unsafe text.withUnsafeMutableBytes { text in
        unsafe sealed.withUnsafeBytes { input in
          guard let nonce = unsafe input.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return false }
          var count: CInt = 0
          let bytes = unsafe text.baseAddress?.assumingMemoryBound(to: UInt8.self)
          // The call is for tags that are read, too; this one only copies it.
          let tag = unsafe UnsafeMutableRawPointer(mutating: nonce + sealed.count - Self.tagSize)
          return unsafe EVP_DecryptInit_ex2(context, nil, nil, nonce, nil) == 1
            && (place.isEmpty || EVP_DecryptUpdate(context, nil, &count, place, CInt(place.count)) == 1)
            && (text.isEmpty || EVP_DecryptUpdate(context, bytes, &count, bytes, CInt(text.count)) == 1)
            && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, CInt(Self.tagSize), tag) == 1
            && EVP_DecryptFinal_ex(context, nil, &count) == 1
        }
      }
    }
    guard isAuthentic else {
      // What is not authentic is nobody's to see. Where it is only the tag that does not fit, OpenSSL gives no reason.
      throw CryptographyError(.notAuthentic)
    }
    return text
  }
}

/// OpenSSL's cipher with a key in it: to put the key in takes longer than to seal or open a short text. The key is
/// overwritten when the last who has it lets go.
@safe private final class CipherContext: @unchecked Sendable {
  // @unchecked: whoever uses the context has the lock.
  private let context: OpaquePointer
  private let lock = Mutex(())

  /// Nil where there is no memory for it.
  init?(_ key: [UInt8]) {
    guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
    guard unsafe EVP_EncryptInit_ex2(context, cipher.pointer, key, nil, nil) == 1 else {
      unsafe EVP_CIPHER_CTX_free(context)
      return nil
    }
    unsafe self.context = context
  }

  deinit { unsafe EVP_CIPHER_CTX_free(context) }

  /// Lends the context to calls of OpenSSL, of which the first sets a nonce: with that, what went before is over.
  func use(_ body: (OpaquePointer) -> Bool) -> Bool { lock.withLock { _ in unsafe body(context) } }
}

extension AES256GCM: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The name of the cipher; never the key.
  public var description: String { "AES-256-GCM" }
  /// The same.
  public var debugDescription: String { description }
  /// Nothing: a dump must not show the key.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Nonces that nobody has used, drawn many at once: each call of the generator costs more than a sealing. They are not
/// secret.
private struct Nonces {
  private static let count = 256
  private var bytes: [UInt8] = []

  mutating func draw() throws(CryptographyError) -> [UInt8] {
    if bytes.isEmpty { bytes = try SecureRandom.bytes(AES256GCM.nonceSize * Self.count) }
    let nonce = Array(bytes.suffix(AES256GCM.nonceSize))
    bytes.removeLast(AES256GCM.nonceSize)
    return nonce
  }
}

private let nonces = Mutex(Nonces())

/// The algorithm, fetched once: `EVP_aes_256_gcm()` stands for a name that OpenSSL would look up each time.
private let cipher = Cipher()

@safe private final class Cipher: @unchecked Sendable {
  // An EVP_CIPHER is never changed after it is made.
  let pointer: OpaquePointer

  init() {
    guard let pointer = unsafe EVP_CIPHER_fetch(nil, "AES-256-GCM", nil) else {
      preconditionFailure("OpenSSL has no AES-256-GCM: its default provider is missing")
    }
    unsafe self.pointer = pointer
  }
}
