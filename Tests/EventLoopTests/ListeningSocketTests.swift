import EventLoop
import Glibc
import Testing

@Suite(.serialized) struct ListeningSocketTests {
  /// The task prefers no executor, so it gives way several times on its way into the wait; in whichever turn of the
  /// loop the connection comes, it is accepted.
  @Test(.timeLimit(.minutes(1)), arguments: 0..<12)
  @Loop func acceptsWhatComesWhileAWaitBegins(turns: Int) async throws {
    let listening = try ListeningSocket(.loopback(port: 0))
    let task = Task { try await listening.accept() }
    after(turns) { connect(to: listening.address.port) }
    let accepted = try #require(await task.value)
    close(accepted.number)
    listening.close()
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

/// Connects and closes at once: the kernel keeps the connection for who accepts it.
@Loop
private func connect(to port: UInt16) {
  let client = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
  let result = unsafe withUnsafeBytes(of: &address) {
    unsafe Glibc.connect(client, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
  }
  #expect(result == 0)
  close(client)
}
