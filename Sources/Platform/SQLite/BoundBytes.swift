/// The texts and blobs that are bound to a statement, for as long as it runs: SQLite reads them where they lie, and need not
/// copy each of them into memory of its own.
@safe final class BoundBytes {
  /// A text or a blob has so many bytes at most, mostly. What there is no room for SQLite copies.
  private static let usual = 64

  private let start: UnsafeMutableRawPointer
  private let size: Int
  private var used = 0

  /// Room for so many of them.
  init(for parameters: Int) {
    size = parameters * Self.usual
    unsafe start = .allocate(byteCount: size, alignment: 16)
  }

  deinit { unsafe start.deallocate() }

  /// Keeps bytes, and says where they lie; nil where there is no room for them.
  func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
    guard let base = bytes.baseAddress, bytes.count <= size - used else { return nil }
    let place = unsafe start + used
    unsafe place.copyMemory(from: base, byteCount: bytes.count)
    used += bytes.count
    return UnsafeRawPointer(place)
  }

  /// Overwrites what was kept: it may be personal.
  func forget() {
    unsafe start.initializeMemory(as: UInt8.self, repeating: 0, count: used)
    used = 0
  }
}
