package import AccountEvents
package import AccountStore
package import Cryptography
import EventLoop

extension Lease {
  /// The lease of that name for a holder, from `time` on.
  package init(_ name: String, of holder: String, at time: Timestamp) {
    self.init(name: name, holder: holder, until: (time + Self.length).milliseconds)
  }

  /// A name that no other process has.
  package static func newHolder() throws(CryptographyError) -> String {
    Base64URL.encode(try SecureRandom.bytes(12))
  }
}

extension AccountStore {
  /// Takes the lease of that name at once, whoever has it: an operator means it, and who has had it is told with the next
  /// thing that they do.
  package func takeOver(
    _ name: String, by holder: String, at time: Timestamp
  ) async throws(AccountStoreError) -> Lease {
    let lease = Lease(name, of: holder, at: time)
    // Somebody renews it meanwhile, once in ten seconds.
    while try await !take(lease, after: try await self.lease(name)) {}
    return lease
  }

  /// Renews a lease; false where it is somebody else's.
  package func renew(_ lease: Lease) async throws(AccountStoreError) -> Bool {
    // What its holder writes meanwhile renews it, too.
    while let seen = try await self.lease(lease.name), seen.holder == lease.holder {
      if try await take(lease, after: seen) { return true }
    }
    return false
  }
}
