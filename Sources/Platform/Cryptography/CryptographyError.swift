import COpenSSL

/// An operation that OpenSSL would not do.
public struct CryptographyError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What was refused or failed; the raw value is a metric label and a log key.
  public enum Code: String, Sendable, CaseIterable {
    /// The numbers or the PEM text are no usable key.
    case malformedKey = "malformed-key"
    /// No key could be generated.
    case generationFailed = "generation-failed"
    /// No signature could be made.
    case signingFailed = "signing-failed"
    /// No certificate could be made.
    case certificateFailed = "certificate-failed"
    /// Nothing could be sealed.
    case sealingFailed = "sealing-failed"
    /// What should be opened was sealed with another key or for another place, or has been changed.
    case notAuthentic = "not-authentic"
    /// The system gave no random bytes.
    case noRandomness = "no-randomness"
  }

  /// The kind of failure.
  public let code: Code
  /// OpenSSL's own words, which name functions and reasons but never data.
  let detail: String

  /// Takes OpenSSL's latest error off the thread's queue, with everything else that stands there.
  ///
  /// The queue must be left empty: `SSL_get_error` reads it too, and would blame a connection for a key's fault.
  init(_ code: Code) {
    self.code = code
    let error = ERR_get_error()
    ERR_clear_error()
    guard error != 0 else {
      detail = "no reason given"
      return
    }
    let size = 160
    detail = unsafe String(unsafeUninitializedCapacity: size) { buffer in
      unsafe buffer.withMemoryRebound(to: CChar.self) { text in
        unsafe ERR_error_string_n(error, text.baseAddress, size)
        return unsafe text.firstIndex(of: 0) ?? 0
      }
    }
  }

  /// A failure for which OpenSSL was not needed.
  init(_ code: Code, _ detail: String) {
    self.code = code
    self.detail = detail
  }

  /// The kind of failure and the reason.
  public var description: String { "\(code.rawValue): \(detail)" }
}
