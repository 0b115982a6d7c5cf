import Foundation

/// Random numbers that can be drawn again: a failure prints the `seed`, and `SEED` in the environment repeats it.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  /// Where the numbers started.
  public let seed: UInt64
  private var state: UInt64

  /// Starts at `SEED`, or somewhere new where it is unset.
  public init() {
    let given = ProcessInfo.processInfo.environment["SEED"].flatMap { UInt64($0) }
    self.init(seed: given ?? UInt64.random(in: 0...UInt64.max))
  }

  /// Starts at `seed`.
  public init(seed: UInt64) { (self.seed, state) = (seed, seed) }

  /// `count` rounds in `make test`. `EFFORT` in the environment multiplies them: `make test-long` sets it.
  public static func rounds(_ count: Int) -> Range<Int> {
    let effort = ProcessInfo.processInfo.environment["EFFORT"].flatMap { Int($0) }
    return 0..<count * (effort ?? 1)
  }

  /// The next number (SplitMix64).
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// `bytes` with one to three places removed, inserted, cut off, doubled or overwritten; what is written comes from
  /// `characters` or is any byte at all.
  public mutating func mutation(of bytes: [UInt8], characters: String) -> [UInt8] {
    var bytes = bytes
    let alphabet = Array(characters.utf8)
    for _ in 0..<Int.random(in: 1...3, using: &self) where !bytes.isEmpty {
      let place = Int.random(in: 0..<bytes.count, using: &self)
      let byte = alphabet.randomElement(using: &self).flatMap { Bool.random(using: &self) ? $0 : nil }
      let written = byte ?? UInt8.random(in: 0...255, using: &self)
      switch Int.random(in: 0..<5, using: &self) {
      case 0: bytes.remove(at: place)
      case 1: bytes.insert(written, at: place)
      case 2: bytes.removeSubrange(place...)
      case 3: bytes.insert(contentsOf: bytes[place..<min(place + 9, bytes.count)], at: place)
      default: bytes[place] = written
      }
    }
    return bytes
  }
}
