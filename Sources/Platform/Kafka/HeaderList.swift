import CLibrdkafka
import Glibc

/// The headers of a record that is about to be sent, in librdkafka's own form.
@safe public struct HeaderList: ~Copyable {
  /// Nil while there are none, and once librdkafka has them.
  private(set) var pointer: OpaquePointer?

  /// No headers, with room for `count`.
  init(room count: Int) { unsafe pointer = count == 0 ? nil : rd_kafka_headers_new(count) }

  deinit { if let pointer = unsafe pointer { unsafe rd_kafka_headers_destroy(pointer) } }

  /// Adds a header behind the others; nil is not the same as empty.
  public mutating func add(_ name: String, _ value: [UInt8]?) {
    let list = unsafe pointer ?? rd_kafka_headers_new(1)
    unsafe pointer = list
    // With its length a name needs no copy that ends with a zero.
    var name = name
    name.withUTF8 { name in
      unsafe name.withMemoryRebound(to: CChar.self) { name in
        unsafe withBytes(value) { value, size in
          _ = unsafe rd_kafka_header_add(list, name.baseAddress, name.count, value, size)
        }
      }
    }
  }

  /// Adds headers behind the others.
  mutating func add(_ headers: [KafkaHeader]) { for header in headers { add(header.name, header.value) } }

  /// Says that librdkafka has taken the list over.
  mutating func letGo() { unsafe pointer = nil }

  /// The headers one by one.
  var headers: [KafkaHeader] { unsafe PackedHeaders(list: pointer).headers }
}

extension PackedHeaders {
  /// Copies the headers in a list of librdkafka's.
  init(list: OpaquePointer?) {
    self.init()
    guard let list = unsafe list else { return }
    var index = 0
    var name: UnsafePointer<CChar>?
    var value: UnsafeRawPointer?
    var size = 0
    while unsafe rd_kafka_header_get_all(list, index, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR {
      guard let name = unsafe name else { break }
      unsafe append(
        UnsafeRawBufferPointer(start: name, count: strlen(name)),
        value.map { unsafe UnsafeRawBufferPointer(start: $0, count: size) })
      index += 1
    }
  }
}
