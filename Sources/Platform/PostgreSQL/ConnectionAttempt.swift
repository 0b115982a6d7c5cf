import CLibpq
import EventLoop

/// A connection that comes to stand, or does not.
///
/// libpq does all of it, on a thread of the attempt's own: names are looked up, hosts tried one after the other with a
/// time for each of their addresses, certificates and password files read, a password hashed thousands of times. Each of
/// these may block, and holds up no other attempt. The pools bound how many there are.
@Loop
enum ConnectionAttempt {
  /// libpq's connection on its way from the thread. @unchecked: the thread has let go of it when somebody else gets it.
  @safe private struct Handle: @unchecked Sendable {
    let pointer: OpaquePointer
  }

  /// Connects as the configuration says. Nothing ends it early: after the first of several hosts come the others.
  static func connect(
    _ configuration: PostgreSQLConfiguration, log: @escaping PostgreSQLLog
  ) async throws(PostgreSQLError) -> Link {
    let notices = NoticeSink(log)
    let (info, limit) = (configuration.connectionInfo, configuration.hostTimeout.wholeNanoseconds / 1_000_000)
    let handle = await BlockingThread(named: "pg-connect").run { () -> Handle? in
      let seconds = "\((limit + 999) / 1000)"
      guard let pointer = unsafe clibpq_start(info, seconds) else { return nil }
      // Of what a server says when it refuses, its code alone: the rest may be in any language.
      unsafe PQsetErrorVerbosity(pointer, PQERRORS_SQLSTATE)
      unsafe notices.listen(to: pointer)
      unsafe clibpq_complete(pointer, CInt(clamping: limit))
      return unsafe Handle(pointer: pointer)
    }
    guard let pointer = unsafe handle?.pointer else {
      throw PostgreSQLError(.resources, detail: "no memory for a connection")
    }
    guard unsafe PQstatus(pointer) == CONNECTION_OK else {
      defer { unsafe PQfinish(pointer) }
      throw unsafe .connection(pointer)
    }
    guard unsafe PQgssEncInUse(pointer) == 0 else {
      unsafe PQfinish(pointer)
      throw PostgreSQLError(.configuration, detail: "encryption by GSSAPI is not supported: use TLS")
    }
    let link = unsafe Link(owning: pointer, notices)
    do throws(SystemError) { try link.watch() } catch {
      throw PostgreSQLError(.connection, detail: "the socket cannot be waited for: \(error)")
    }
    return link
  }
}
