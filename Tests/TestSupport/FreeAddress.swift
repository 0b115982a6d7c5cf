public import EventLoop

extension SocketAddress {
  /// An address on loopback that is free, for a program that cannot say which one it took: below those that the system gives,
  /// and that brokers and databases of the tests take.
  @Loop
  public static func free() throws -> SocketAddress {
    for port in (10_000..<20_000 as Range<UInt16>).shuffled() {
      do {
        try ListeningSocket(.loopback(port: port)).close()
        return .loopback(port: port)
      } catch { continue }  // somebody has it
    }
    throw NoFreePort()
  }

  private struct NoFreePort: Error {}
}
