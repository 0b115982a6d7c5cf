/// What one of many processes does alone, and which of them does it now.
///
/// No clock is compared with another host's: whoever wants to take a lease over waits until it has stood unchanged for as
/// long as leases hold, by its own clock. That the holder of before does nothing more in its name, the store sees to: it
/// asks who holds it in the transaction of what is done.
package struct Lease: Sendable, Hashable {
  /// What is done alone.
  package let name: String
  /// The process that does it, by a name that no other has.
  package let holder: String
  /// Another one with each renewal: until when it holds by the holder's clock, in milliseconds since 1970.
  package let until: Int64

  /// A lease from its parts.
  package init(name: String, holder: String, until: Int64) {
    (self.name, self.holder, self.until) = (name, holder, until)
  }

  /// How long one holds that is not renewed.
  package static let length = Duration.seconds(30)
  /// How often its holder renews it.
  package static let pulse = Duration.seconds(10)
  /// The validation of refresh tokens.
  package static let validation = "token-validation"
}
