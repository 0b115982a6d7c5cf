/// A configuration file taken apart: strict YAML in which every value means what it says.
///
/// Refused are duplicate keys, anchors, aliases and tags (a file is read by people, who do not resolve references),
/// more than one document, and whatever exceeds the limits. All of these faults are collected; only where libyaml
/// itself gives up does the reading end.
struct YAMLDocument {
  static let maximumSize = 1 << 20
  static let maximumDepth = 16
  static let maximumNodes = 20_000

  private(set) var faults: [YAMLFault] = []
  /// Whether `root` is what the file says, if with faults; otherwise it is empty.
  private(set) var isReadable = true
  private(set) var root = YAMLNode(line: 1, content: .mapping([]))

  /// A sequence or mapping whose end has not come yet: there is no recursion, whatever the file nests.
  private struct Open {
    let line: Int
    let isMapping: Bool
    var items: [YAMLNode] = []
    var entries: [YAMLEntry] = []
    var lines: [String: Int] = [:]
    var key: (text: String, line: Int)?
  }

  private var open: [Open] = []
  private var nodes = 0

  init(_ bytes: [UInt8]) {
    do throws(YAMLFault) {
      try read(bytes)
      if root.entries == nil { throw YAMLFault(line: root.line, message: "expected settings, as in \"log: {…}\"") }
    } catch {
      faults.append(error)
      isReadable = false
      root = YAMLNode(line: 1, content: .mapping([]))
    }
  }

  private mutating func read(_ bytes: [UInt8]) throws(YAMLFault) {
    guard bytes.count <= Self.maximumSize else {
      throw YAMLFault(line: 1, message: "larger than \(Self.maximumSize >> 20) MiB")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      let bad = lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0
      throw YAMLFault(line: bad + 1, message: "not UTF-8")
    }
    var events = YAMLEvents(text)
    var documents = 0
    while true {
      let event = try events.next()
      switch event.kind {
      case .streamEnd: return
      case .streamStart, .documentEnd: break
      case .documentStart:
        documents += 1
        if documents > 1 { throw YAMLFault(line: event.line, message: "expected one YAML document, found another") }
      default: try take(event)
      }
    }
  }

  private mutating func take(_ event: YAMLEvents.Event) throws(YAMLFault) {
    nodes += 1
    guard nodes <= Self.maximumNodes else { throw YAMLFault(line: event.line, message: "too many values") }
    if event.isDecorated {
      faults.append(YAMLFault(line: event.line, message: "anchors (&name) and tags (!name) are not allowed"))
    }
    switch event.kind {
    case .alias:
      faults.append(YAMLFault(line: event.line, message: "aliases (*name) are not allowed"))
      try close(YAMLNode(line: event.line, content: .scalar("", isQuoted: false)))
    case .scalar(let text, let isQuoted):
      try close(YAMLNode(line: event.line, content: .scalar(text, isQuoted: isQuoted)))
    case .sequenceStart: try begin(Open(line: event.line, isMapping: false))
    case .mappingStart: try begin(Open(line: event.line, isMapping: true))
    case .sequenceEnd, .mappingEnd:
      guard let ended = open.popLast() else { preconditionFailure("libyaml ended what it had not begun") }
      let content: YAMLNode.Content = ended.isMapping ? .mapping(ended.entries) : .sequence(ended.items)
      try close(YAMLNode(line: ended.line, content: content))
    case .streamStart, .streamEnd, .documentStart, .documentEnd: break
    }
  }

  private mutating func begin(_ collection: Open) throws(YAMLFault) {
    guard open.count < Self.maximumDepth else {
      throw YAMLFault(line: collection.line, message: "nested deeper than \(Self.maximumDepth) levels")
    }
    if let last = open.last, last.isMapping, last.key == nil {
      throw YAMLFault(line: collection.line, message: "expected text as a key")
    }
    open.append(collection)
  }

  /// A node is complete: it goes to what it stands in, as an item, a key or a value.
  private mutating func close(_ node: YAMLNode) throws(YAMLFault) {
    guard let last = open.indices.last else { return root = node }
    guard open[last].isMapping else { return open[last].items.append(node) }
    if let key = open[last].key {
      open[last].entries.append(YAMLEntry(key: key.text, line: key.line, value: node))
      open[last].key = nil
      return
    }
    guard case .scalar(let text, _) = node.content else {
      throw YAMLFault(line: node.line, message: "expected text as a key")
    }
    if let first = open[last].lines.updateValue(node.line, forKey: text) {
      faults.append(YAMLFault(line: node.line, message: "\(text.quoted) stands here twice, first in line \(first)"))
    }
    open[last].key = (text, node.line)
  }
}
