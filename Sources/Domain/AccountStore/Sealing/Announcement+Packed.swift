import AccountEvents

/// Announcements as one blob, to be sealed.
extension [Announcement] {
  var packed: [UInt8] { map { EventRecord.Header(name: $0.topic.name, value: $0.packed) }.packed }

  /// Nil where the bytes are not of this form.
  init?(packed: [UInt8]) {
    guard let parts = [EventRecord.Header](packed: packed) else { return nil }
    self = parts.compactMap { Announcement(packed: $0.value, topic: Topic(name: $0.name)) }
    if count != parts.count { return nil }
  }
}

/// An announcement as one blob: key and value in front of the headers, as though they were two.
extension Announcement {
  private static let (value, tombstone) = ("value", "tombstone")

  fileprivate var packed: [UInt8] {
    let name = value == nil ? Self.tombstone : Self.value
    let parts = [EventRecord.Header(name: "key", value: key), EventRecord.Header(name: name, value: value ?? [])]
    return (parts + headers).packed
  }

  fileprivate init?(packed: [UInt8], topic: Topic) {
    guard let parts = [EventRecord.Header](packed: packed), parts.count >= 2 else { return nil }
    self.init(
      topic: topic, key: parts[0].value, value: parts[1].name == Self.tombstone ? nil : parts[1].value,
      headers: Array(parts[2...]))
  }
}
