import Configuration
import TestSupport
import Testing

/// Whatever comes in, out come faults or values, never a trap. A failure can be seen again by its seed.
@Suite struct DamageTests {
  @Test(arguments: 0..<8) func survivesADamagedFile(seed: UInt64) {
    let good = Array(
      """
      main: { name: "x", listen: '127.0.0.1:80', tags: [a, &b c, *b], level: !low high }
      limits:
        A: { most: 3 }   # comment
        B:
          most: |
            4
      options: { a.b: "1", c.password: /nonexistent }
      ? complex
      : >-
        folded
      """.utf8)
    var generator = SeededRandom(seed: seed)
    let both = schema.adding("vault", Vault.self)
    for _ in SeededRandom.rounds(100) {
      var bytes = good
      for _ in 0...Int.random(in: 0...8, using: &generator) where bytes.count > 1 {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0...4, using: &generator) {
        case 0: bytes[index] = UInt8.random(in: 0...255, using: &generator)
        case 1: bytes.remove(at: index)
        case 2: bytes.insert(Array("{}[]:,&*!|>'\"%@`#?-\n\t ".utf8).randomElement(using: &generator) ?? 0, at: index)
        case 3: bytes.insert(contentsOf: bytes[..<index].suffix(20), at: index)
        default: bytes = Array(bytes[..<max(1, index)])
        }
      }
      _ = both.faults(Example.self, bytes: bytes)
      _ = both.faults(Vault.self, bytes: bytes)
    }
  }

  private static let pieces = [
    "TEST_", "MAIN_", "LIMITS_", "OPTIONS_", "MOST", "_FILE", "A", "{ROOM}", "PASSWORD", "_", "", "ü", "main.",
    "limits.",
    "options.", "..", "=", "most", "name", "--", "--to", "-", "send", "box", "\u{0}", "a,b,,", "\u{fffd}",
    "99999999999s",
  ]

  @Test(arguments: 0..<8) func survivesAnyVariablesAndWords(seed: UInt64) {
    var generator = SeededRandom(seed: seed)
    let program = CommandLineProgram("post", "Sends and checks.", [Send.self, Check.self])
    func word() -> String {
      (0..<Int.random(in: 0...5, using: &generator)).map { _ in
        Self.pieces.randomElement(using: &generator) ?? ""
      }.joined()
    }
    func words() -> [String] { (0..<Int.random(in: 0...6, using: &generator)).map { _ in word() } }
    let both = schema.adding("vault", Vault.self)
    for _ in SeededRandom.rounds(200) {
      let environment = Dictionary(words().map { ("TEST_" + $0, word()) }, uniquingKeysWith: { first, _ in first })
      _ = both.check(ConfigurationSources(environment: environment, overrides: words())).description
      _ = program.parse(words())
    }
  }
}
