import CLibrdkafka
import Synchronization

/// The headers of the records that a consumer has given out, where librdkafka has them.
///
/// Librdkafka takes headers apart into an allocation each, which costs more than all the rest of a record, and few readers
/// want any. So its message stays until the record goes. But a message keeps a broker's whole answer in memory, and the
/// client from ending: where a record stays while `limit` others are read, or beyond the end of the consumer, its headers
/// are copied, and the message goes.
final class UnreadHeaders: Sendable {
  /// One of librdkafka's messages, and the event that owns it.
  @safe struct Message: @unchecked Sendable {
    // @unchecked: it is used under the lock alone, and librdkafka lets any thread do so.
    let event: OpaquePointer
    let pointer: UnsafePointer<rd_kafka_message_t>
  }

  private struct State {
    /// The messages of the last `limit` records, each in the place of its number: nil where the record is gone.
    var messages: [Message?]
    /// The headers of older records that are not gone, by their numbers.
    var copies: [Int: PackedHeaders] = [:]
    /// How many records there were, which is the number of the next one.
    var count = 0

    /// Puts copies in the place of a message's headers.
    mutating func copy(_ message: Message, of number: Int) {
      copies[number] = PackedHeaders(message)
      unsafe rd_kafka_event_destroy(message.event)
      messages[number % messages.count] = nil
    }
  }

  private let state: Mutex<State>

  /// Keeps the messages of so many records at most.
  init(limit: Int) { state = Mutex(State(messages: Array(repeating: nil, count: limit))) }

  /// How many records have their message still, and how many have copies in its place.
  var held: (messages: Int, copies: Int) { state.withLock { ($0.messages.count { $0 != nil }, $0.copies.count) } }

  /// Takes over the message of the record that comes next.
  func take(_ message: Message) -> Reference {
    let number = state.withLock { state in
      let place = state.count % state.messages.count
      if let old = state.messages[place] { state.copy(old, of: state.count - state.messages.count) }
      state.messages[place] = message
      state.count += 1
      return state.count - 1
    }
    return Reference(self, number)
  }

  /// Copies what is left of the headers: from here on nothing of librdkafka's is kept.
  func copyAll() {
    state.withLock { state in
      for number in max(0, state.count - state.messages.count)..<state.count {
        if let message = state.messages[number % state.messages.count] { state.copy(message, of: number) }
      }
    }
  }

  /// One record's headers; they are let go with it.
  final class Reference: Sendable {
    private let all: UnreadHeaders
    private let number: Int

    fileprivate init(_ all: UnreadHeaders, _ number: Int) { (self.all, self.number) = (all, number) }

    deinit { all.letGo(number) }

    /// The headers, copied anew each time.
    var packed: PackedHeaders { all.headers(of: number) }
  }

  private func headers(of number: Int) -> PackedHeaders {
    state.withLock { state in
      if let copy = state.copies[number] { return copy }
      // Without a copy, the place is still its own.
      return state.messages[number % state.messages.count].map { PackedHeaders($0) } ?? PackedHeaders()
    }
  }

  private func letGo(_ number: Int) {
    state.withLock { state in
      let place = number % state.messages.count
      if number >= state.count - state.messages.count, let message = state.messages[place] {
        unsafe rd_kafka_event_destroy(message.event)
        state.messages[place] = nil
      } else {
        state.copies[number] = nil
      }
    }
  }
}

extension PackedHeaders {
  /// Copies a message's headers.
  fileprivate init(_ message: UnreadHeaders.Message) {
    var list: OpaquePointer?
    // The list belongs to the message, which has none where it has no headers.
    _ = unsafe rd_kafka_message_headers(message.pointer, &list)
    unsafe self.init(list: list)
  }
}
