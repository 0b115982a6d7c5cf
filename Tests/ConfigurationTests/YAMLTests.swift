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
}
