import CLibrdkafka

/// The configuration object of librdkafka, until a client takes it over.
@safe struct ClientConfiguration: ~Copyable {
  let pointer: OpaquePointer

  init() { unsafe pointer = rd_kafka_conf_new() }

  deinit { unsafe rd_kafka_conf_destroy(pointer) }

  /// Gives the object to librdkafka, which frees it.
  consuming func release() -> OpaquePointer {
    let pointer = unsafe self.pointer
    discard self
    return unsafe pointer
  }

  /// Sets a property. Returns librdkafka's words if it refuses, nil if it does not.
  func set(_ name: String, _ value: String) -> String? {
    var words = [CChar](repeating: 0, count: 512)
    let result = unsafe rd_kafka_conf_set(pointer, name, value, &words, words.count)
    return result == RD_KAFKA_CONF_OK ? nil : String(terminated: words)
  }

  /// A property's value as librdkafka writes it, whatever way it was set; nil where there is none.
  subscript(name: String) -> String? { unsafe Self.value(of: name, in: pointer) }

  static func value(of name: String, in configuration: OpaquePointer?) -> String? {
    var size = 0
    guard unsafe rd_kafka_conf_get(configuration, name, nil, &size) == RD_KAFKA_CONF_OK else { return nil }
    var value = [CChar](repeating: 0, count: size)
    guard unsafe rd_kafka_conf_get(configuration, name, &value, &size) == RD_KAFKA_CONF_OK else { return nil }
    return String(terminated: value)
  }
}

extension String {
  /// The text of a C buffer up to its first zero.
  init(terminated buffer: [CChar]) {
    self.init(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
