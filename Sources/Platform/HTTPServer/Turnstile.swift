import EventLoop

/// Lets through who has shown nothing yet: one in each turn of the loop, the last of its round, the networks in turn.
///
/// A connection is proven by an answer that was no refusal, and loses that by a refusal. What a proven one wants is done
/// when the kernel reports it. Any other connection comes through here before each piece of work: a step of its
/// handshake, what it sent of a request, the request itself. So, however many there are and whatever they send:
///
/// - A proven connection waits for one piece of unproven work at most, until its turn begins, beside what other proven
///   ones have to be done.
/// - A connection of a network from which little comes waits for one piece of each other network, and not for all that
///   one network sends.
///
/// A piece is bounded by what a connection reads in one turn (`TLSConnection.fairShare`). The dearest is the signature
/// in a handshake: 0.26 ms for RSA with 2048 bits, 0.02 ms for P-256 (`openssl speed`).
@Loop
final class Turnstile {
  /// Where a connection waits; empty while it does not.
  @Loop
  @safe final class Place {
    @safe fileprivate var waiting: UnsafeContinuation<Void, Never>?

    nonisolated init() {}

    /// Whether the connection waits here.
    var isTaken: Bool { unsafe waiting != nil }

    /// Ends the wait at once: the connection has to end.
    func leave() {
      guard let waiting else { return }
      self.waiting = nil
      unsafe waiting.resume()
    }
  }

  private var lines: [SocketAddress.InlineAddress: FIFO<Place>] = [:]
  /// The networks that have a line, the next one first.
  private var order = FIFO<SocketAddress.InlineAddress>()
  /// How many were let through so far.
  private(set) var passed: UInt64 = 0

  nonisolated init() {}

  /// Suspends until it is this one's turn, or it has left.
  func pass(_ place: Place, of network: SocketAddress.InlineAddress) async {
    await unsafe withUnsafeContinuation { waiting in
      unsafe place.waiting = waiting
      if lines.isEmpty { Loop.afterTurn { [self] in letNext() } }
      if lines[network] == nil { order.append(network) }
      lines[network, default: FIFO()].append(place)
    }
  }

  private func letNext() {
    while let network = order.popFirst() {
      let place = lines[network]?.popFirst()
      if lines[network]?.isEmpty == true { lines[network] = nil } else { order.append(network) }
      // Who has left meanwhile does not count.
      guard let place, unsafe place.waiting != nil else { continue }
      passed += 1
      place.leave()
      break
    }
    if !lines.isEmpty { Loop.afterTurn { [self] in letNext() } }
  }
}
