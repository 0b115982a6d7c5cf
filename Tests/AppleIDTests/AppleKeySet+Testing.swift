import AppleID

extension AppleKeySet {
  /// Reads a set as the first one that there is.
  init(reading text: RawSpan) throws(AppleKeySetError) { try self.init(reading: text, at: Forge.now, after: .none) }
}
