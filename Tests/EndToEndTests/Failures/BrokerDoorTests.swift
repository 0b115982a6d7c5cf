import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct BrokerDoorTests {
  /// Whether what the door holds back arrives, once its client has closed its connection in this way.
  @Loop private func arrives(afterReset isReset: Bool) async throws -> Bool {
    let (listener, door) = (try ListeningSocket(.loopback(port: 0)), try BrokerDoor())
    defer { listener.close() }
    door.broker = listener.address
    let client = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var closing = linger(l_onoff: isReset ? 1 : 0, l_linger: 0)
    unsafe setsockopt(client, SOL_SOCKET, SO_LINGER, &closing, socklen_t(MemoryLayout<linger>.size))
    try #require(unsafe door.address.withSystemAddress { unsafe connect(client, $0, $1) } == 0)
    let accepted = try #require(try await listener.accept())
    let broker = try Descriptor(owning: accepted.number)
    defer { broker.close() }
    door.state = .silent
    try #require(unsafe write(client, "record", 6) == 6)
    Glibc.close(client)
    if !isReset { door.state = .open }
    // Something, or the end of the connection.
    var (byte, count) = (UInt8(0), -1)
    try await until {
      count = unsafe recv(broker.number, &byte, 1, 0)
      return count >= 0 || errno != EAGAIN
    }
    return count == 1
  }

  @Test func whatItHoldsBackArrivesOnceTheClientHasEnded() async throws {
    #expect(try await arrives(afterReset: false))
  }

  @Test func whatItHoldsBackIsDroppedWithAConnectionThatIsReset() async throws {
    #expect(try await !arrives(afterReset: true))
  }
}
