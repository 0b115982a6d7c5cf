import Configuration
import Testing

@Suite struct YAMLTests {
  @Test(arguments: [
    ("main: { name: x", "t.yaml:1: not YAML: did not find expected ',' or '}'"),
    ("main:\n name: x\n  fast: true", "t.yaml:3: not YAML: mapping values are not allowed in this context"),
    ("main:\n\tname: x", "t.yaml:2: not YAML: found character that cannot start any token"),
    ("main: { name: \"x }", "t.yaml:1: not YAML: found unexpected end of stream"),
    ("a: b\n---\nc: d", "t.yaml:2: expected one YAML document, found another"),
    ("just text", "t.yaml:1: expected settings, as in \"log: {…}\""),
    ("- a\n- b", "t.yaml:1: expected settings, as in \"log: {…}\""),
    ("main:\n  ? [a]\n  : b", "t.yaml:2: expected text as a key"),
    ("main:\n  ? {a: b}\n  : b", "t.yaml:2: expected text as a key"),
    ("main: { name: x }\nmain: { name: y }", "t.yaml:2: \"main\" stands here twice, first in line 1"),
    ("main: { name: &a x }", "t.yaml:1: anchors (&name) and tags (!name) are not allowed"),
    ("main: &m { name: x }", "t.yaml:1: anchors (&name) and tags (!name) are not allowed"),
    ("main: { name: !!str x }", "t.yaml:1: anchors (&name) and tags (!name) are not allowed"),
    ("main: !map { name: x }", "t.yaml:1: anchors (&name) and tags (!name) are not allowed"),
    ("main:\n  name: x\n  tags: !!seq [a]", "t.yaml:3: anchors (&name) and tags (!name) are not allowed"),
  ]) func refusesWhatIsNotPlainYAML(file: String, fault: String) {
    #expect(schema.faults(Example.self, file: file) == [fault])
  }

  @Test func refusesAliases() {
    let file = "main:\n  name: &a x\n  level: *a\n"
    #expect(
      schema.faults(Example.self, file: file) == [
        "t.yaml:2: anchors (&name) and tags (!name) are not allowed",
        "t.yaml:3: aliases (*name) are not allowed",
        "t.yaml:3: main.level: expected low or high, found nothing",
      ])
  }

  @Test(arguments: [
    ("main:\n  name: \u{ff}", "t.yaml:2: not UTF-8"),
    ("a: 1\n# Gr\u{fc}n\nb: 2", "t.yaml:2: not UTF-8"),
    ("\u{ff}\u{fe}a\0:\0", "t.yaml:1: not UTF-8"),
    ("main:\n  name: a\u{7}b\n", "t.yaml:2: not YAML: control characters are not allowed"),
    ("main:\n  name: a\0b\n", "t.yaml:2: not YAML: control characters are not allowed"),
  ]) func refusesWhatIsNotText(latin1: String, fault: String) {
    let bytes = latin1.unicodeScalars.map { UInt8($0.value) }
    #expect(schema.faults(Example.self, bytes: bytes) == [fault])
  }

  @Test func isBoundedInSizeDepthAndNumber() {
    let deep = String(repeating: "[", count: 100_000)
    #expect(schema.faults(Example.self, file: "main: \(deep)") == ["t.yaml:1: nested deeper than 16 levels"])
    let blocks = (0..<40).map { String(repeating: " ", count: $0) + "a:\n" }.joined()
    #expect(schema.faults(Example.self, file: blocks) == ["t.yaml:17: nested deeper than 16 levels"])
    let many = "main: [" + String(repeating: "a,", count: 100_000) + "]"
    #expect(schema.faults(Example.self, file: many) == ["t.yaml:1: too many values"])
    let large = "main: { name: x } #" + String(repeating: " ", count: 1 << 20)
    #expect(schema.faults(Example.self, file: large) == ["--config: t.yaml cannot be read: File too large"])
  }

  @Test(arguments: [
    "main: { name: x }", "%YAML 1.2\n---\nmain: { name: x }\n...\n", "\u{feff}main: { name: x }",
    "main:\r\n  name: x\r\n", "\"main\": { 'name': \"x\" }", "main:\n  name: >-\n    x\n", "{ main: { name: x } }",
  ]) func acceptsTheFormsOfYAML(file: String) {
    #expect(schema.faults(Example.self, file: file) == [])
  }

  /// Random damage to a good file: whatever comes out, it is faults or values, never a trap.
  @Test(arguments: 0..<8) func survivesRandomDamage(seed: UInt64) {
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
    var generator = SplitMix(state: seed)
    let both = schema.adding("vault", Vault.self)
    for _ in 0..<250 {
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
}

/// The same numbers for the same seed, so that a failure can be seen again.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }
}
