import AccountEvents
import EventLoop
import Testing

@testable import AccountStore

/// What vouches for a deletion that Apple knows nothing of.
@Loop @Suite struct DeletionRequestTests {
  private static func request(
    _ event: String = #"{"id":"a"}"#, by person: String = "bob", because reason: String = "a letter"
  ) -> DeletionRequest {
    DeletionRequest(Array(event.utf8), by: Array(person.utf8), because: Array(reason.utf8))
  }

  @Test(arguments: Implementation.all)
  func aCodeIsOfOneRequestWhoeverHasTheStoreOpen(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare(hashKey: nil)
    let (store, again) = (try await prepared.open(), try await prepared.open())
    let code = store.code(of: Self.request())
    #expect(again.code(of: Self.request()) == code && again.isGenuine(code, of: Self.request()))
    for other in [
      Self.request(#"{"id":"b"}"#), Self.request(by: "eve"), Self.request(because: "another"),
      // The same bytes in a row, divided otherwise.
      Self.request(by: "boba", because: " letter"), Self.request(#"{"id":"a"}b"#, by: "ob"),
      Self.request(by: "", because: "boba letter"),
    ] { #expect(!store.isGenuine(code, of: other) && store.code(of: other) != code) }
    for wrong in ["", "no code", String(code.dropLast()), code + "A", code.uppercased()] {
      #expect(!store.isGenuine(wrong, of: Self.request()), "\(wrong)")
    }
    for one in [store, again] { await one.close() }
  }

  @Test(arguments: Implementation.all)
  func aCodeOfAnotherStoreCountsForNothing(_ implementation: Implementation) async throws {
    try await PreparedStore.with(implementation, hashKey: nil) { store throws in
      try await PreparedStore.with(implementation, hashKey: nil) { other throws in
        #expect(!store.isGenuine(other.code(of: Self.request()), of: Self.request()))
      }
    }
  }

  /// A request may wait for days behind a target that fails.
  @Test(arguments: Implementation.all)
  func aCodeOutlivesOneRotationOfTheHashingKeyAndNotTwo(_ implementation: Implementation) async throws {
    let prepared = try await implementation.prepare()
    let store = try await prepared.open()
    let former = store.code(of: Self.request())
    let rotation = try await prepared.rotate(1)
    #expect(try await rotation.begin(try newHashKey()))
    // Whoever has the store open learns of the key with the next transaction.
    try await store.check()
    #expect(store.isGenuine(former, of: Self.request()))
    let code = store.code(of: Self.request())
    #expect(code != former && store.isGenuine(code, of: Self.request()))
    while try await rotation.step() {}
    try await rotation.complete()
    try await store.check()
    #expect(store.isGenuine(former, of: Self.request()) && store.isGenuine(code, of: Self.request()))
    #expect(!store.isGenuine(former, of: Self.request(by: "eve")))
    _ = try await prepared.administration.rotateHashKey(to: try newHashKey()) { _ in }
    try await store.check()
    #expect(!store.isGenuine(former, of: Self.request()) && store.isGenuine(code, of: Self.request()))
    await store.close()
  }
}
