import EventLoop
import Glibc
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30))) struct ListeningSocketTests {
  /// The task prefers no executor, so it gives way several times on its way into the wait; in whichever turn of the
  /// loop the connection comes, it is accepted.
  @Test(arguments: 0..<12)
  @Loop func acceptsWhatComesWhileAWaitBegins(turns: Int) async throws {
    let listening = try ListeningSocket(.loopback(port: 0))
    let task = Task { try await listening.accept() }
    // Connected and closed at once: the kernel keeps the connection for who accepts it.
    after(turns) { #expect(throws: Never.self) { try RawClient(listening.address).close() } }
    let accepted = try #require(await task.value)
    accepted.close()
    listening.close()
  }

  @Loop
  @Test(arguments: ["127.0.0.1:0", "[::1]:0"])
  func acceptsWhoConnects(_ text: String) async throws {
    let socket = try ListeningSocket(try #require(SocketAddress(text)))
    #expect(socket.address.port != 0)
    #expect(socket.address.host == SocketAddress(text)?.host)
    let client = try RawClient(socket.address)
    let accepted = try #require(try await socket.accept())
    #expect(accepted.peer == client.address)
    #expect(fcntl(accepted.number, F_GETFL) & O_NONBLOCK != 0)
    #expect(fcntl(accepted.number, F_GETFD) & FD_CLOEXEC != 0)
    accepted.close()
    try await client.readToEnd()
    socket.close()
  }

  @Loop
  @Test func saysWhyItCannotListen() throws {
    let taken = try ListeningSocket(.loopback(port: 0))
    defer { taken.close() }
    #expect(throws: SystemError(code: EADDRINUSE)) { try ListeningSocket(taken.address) }
    let elsewhere = try #require(SocketAddress("192.0.2.1:0"))
    #expect(throws: SystemError(code: EADDRNOTAVAIL)) { try ListeningSocket(elsewhere) }
    #expect(SystemError(code: EADDRINUSE).description == "Address already in use")
    #expect(SystemError(code: 99_999).description.contains("99999"))
  }

  @Loop
  @Test func sharesAPortWithWhoSharesItToo() throws {
    let first = try ListeningSocket(.loopback(port: 0), sharingPort: true)
    let second = try ListeningSocket(first.address, sharingPort: true)
    #expect(throws: SystemError(code: EADDRINUSE)) { try ListeningSocket(first.address) }
    first.close()
    second.close()
  }

  @Loop
  @Test func acceptEndsWhenItIsClosed() async throws {
    let socket = try ListeningSocket(.loopback(port: 0))
    let accepting = Task { @Loop in try await socket.accept() == nil }
    await turn()
    socket.close()
    #expect(try await accepting.value)
    #expect(try await socket.accept() == nil)
  }

  /// The number of the closed socket goes to another listening socket: whoever asks the first must not get connections
  /// of the second.
  @Loop
  @Test func acceptNeverAsksANumberThatIsAnothers() async throws {
    let socket = try ListeningSocket(.loopback(port: 0))
    let accepting = Task { @Loop in try await socket.accept() == nil }
    await turn()
    let client = try RawClient(socket.address)
    socket.close()
    let other = try ListeningSocket(.loopback(port: 0))
    let second = try RawClient(other.address)
    #expect(try await accepting.value)
    let accepted = try #require(try await other.accept())
    #expect(accepted.peer == second.address)
    accepted.close()
    other.close()
    client.close()
    second.close()
  }

  @Loop
  @Test func closesWhenNobodyHoldsItAnyMore() async throws {
    var socket: ListeningSocket? = try ListeningSocket(.loopback(port: 0))
    let address = try #require(socket).address
    socket = nil
    // A program that another test starts just now holds the socket, too, until it is another program.
    while true {
      do {
        try ListeningSocket(address).close()
        return
      } catch { try #require(error == SystemError(code: EADDRINUSE)) }
      await turn()
    }
  }
}

/// Calls `action` in a later turn of the loop, after its jobs: each deadline passes in the turn after it was set.
@Loop
private func after(_ turns: Int, _ action: @escaping @Loop () -> Void) {
  if turns == 0 { return action() }
  let deadline = Deadline()
  deadline.onPass { after(turns - 1, action) }
  deadline.set(.now)
}
