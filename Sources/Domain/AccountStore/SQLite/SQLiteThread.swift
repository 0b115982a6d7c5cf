import EventLoop
import Synchronization

/// A thread, and a connection to the store's file that is used on it.
final class SQLiteThread<Connection>: Sendable {
  private let thread: BlockingThread
  private let connection = Mutex<Connection?>(nil)

  /// A thread without a connection yet.
  init(named name: String) { thread = BlockingThread(named: name) }

  /// Makes the connection, and returns what `body` takes from it.
  func open<Value: Sendable>(
    _ make: @escaping @Sendable () throws(AccountStoreError) -> sending Connection,
    _ body: @escaping @Sendable (Connection) -> Value
  ) async throws(AccountStoreError) -> Value {
    let result = await thread.run { [self] in
      Result { () throws(AccountStoreError) in
        try connection.withLock { connection throws(AccountStoreError) in
          let made = try make()
          connection = made
          return body(made)
        }
      }
    }
    return try result.get()
  }

  /// Runs `work` with the connection, unless it was closed.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable (Connection) throws(AccountStoreError) -> Value
  ) async throws(AccountStoreError) -> Value {
    let result = await thread.run { [self] in
      withConnection { connection in
        Result { () throws(AccountStoreError) in try work(try connection.get()) }
      }
    }
    return try result.get()
  }

  /// Runs `work` with the connection, or with the reason why there is none.
  func ask<Value: Sendable>(
    _ work: @escaping @Sendable (Result<Connection, AccountStoreError>) -> Value
  ) async -> Value {
    await thread.run { [self] in withConnection(work) }
  }

  private func withConnection<Value: Sendable>(_ work: (Result<Connection, AccountStoreError>) -> Value) -> Value {
    connection.withLock { connection in
      work(connection.map { .success($0) } ?? .failure(AccountStoreError(.closed, "it was closed")))
    }
  }

  /// Runs `work` on the caller's own thread while nothing is done with the connection. Nobody but its thread ever waits for
  /// it.
  func pause<Value: Sendable>(_ work: () -> Value) -> Value { connection.withLock { _ in work() } }

  /// Runs `work` with the connection on the caller's own thread; nil where there is none, or something else is done with it.
  func attempt<Value: Sendable>(_ work: (Connection) -> Value) -> Value? {
    connection.withLockIfAvailable { connection in
      if let connection { work(connection) } else { nil }
    } ?? nil
  }

  /// Closes the connection. The thread ends with this object.
  func close() async { await thread.run { [self] in connection.withLock { $0 = nil } } }
}
