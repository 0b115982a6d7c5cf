/// The headers of a record that was read, in one run of bytes: few readers want them, and one by one each would cost two
/// allocations, which is more than all the rest of the record.
struct PackedHeaders: Sendable, Hashable {
  /// Of each header its name, the size of its value or -1 where it has none, and the value; sizes as four bytes.
  private var bytes: [UInt8] = []

  /// No headers.
  init() {}

  /// The same headers as one by one.
  init(_ headers: [KafkaHeader]) {
    for header in headers {
      let name = Array(header.name.utf8)
      unsafe name.withUnsafeBytes { name in
        guard let value = header.value else { return unsafe append(name, nil) }
        unsafe value.withUnsafeBytes { unsafe append(name, $0) }
      }
    }
  }

  /// Puts a header behind the others.
  mutating func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer?) {
    append(size: name.count)
    unsafe bytes.append(contentsOf: name)
    append(size: unsafe value?.count ?? -1)
    if let value = unsafe value { unsafe bytes.append(contentsOf: value) }
  }

  /// One by one, in their order.
  var headers: [KafkaHeader] {
    var headers: [KafkaHeader] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let name = String(decoding: Self.take(Self.takeSize(&rest), from: &rest), as: UTF8.self)
      let size = Self.takeSize(&rest)
      headers.append(KafkaHeader(name, size < 0 ? nil : Array(Self.take(size, from: &rest))))
    }
    return headers
  }

  private mutating func append(size: Int) {
    // No record is as large: librdkafka takes a thousand million bytes at most.
    let size = UInt32(bitPattern: Int32(size))
    for shift in [0, 8, 16, 24] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: size >> shift)) }
  }

  private static func takeSize(_ rest: inout ArraySlice<UInt8>) -> Int {
    Int(Int32(bitPattern: take(4, from: &rest).reversed().reduce(0) { $0 << 8 | UInt32($1) }))
  }

  private static func take(_ count: Int, from rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }
}
