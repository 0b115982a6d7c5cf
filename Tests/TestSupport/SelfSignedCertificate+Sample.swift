public import Cryptography

extension SelfSignedCertificate {
  /// One that a server can be made with, for tests that connect to none.
  public static let sample: SelfSignedCertificate = {
    do throws(CryptographyError) {
      return try SelfSignedCertificate(for: ["localhost"], validFrom: 0, seconds: 4_000_000_000)
    } catch {
      preconditionFailure("\(error)")
    }
  }()
}
