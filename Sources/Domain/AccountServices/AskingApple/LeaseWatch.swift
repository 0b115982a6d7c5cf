import AccountStore
import EventLoop

/// When a lease may be taken: where nobody has it, or where it has stood as it is for as long as leases hold, by our own
/// clock. Hosts whose clocks lie apart take none from each other.
struct LeaseWatch {
  private let holder: String
  private var seen: (lease: Lease, since: MonotonicTime)?

  /// A watch of this holder's.
  init(_ holder: String) { self.holder = holder }

  /// Whether the lease may be taken that stands like this now.
  mutating func mayTake(_ lease: Lease?, at now: MonotonicTime) -> Bool {
    guard let lease, lease.holder != holder else { return true }
    guard let seen, seen.lease == lease else {
      self.seen = (lease, now)
      return false
    }
    return now - seen.since >= Lease.length
  }
}
