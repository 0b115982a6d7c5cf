import CLibyaml

/// libyaml's parser over bytes in memory: one event after the other.
@safe struct YAMLEvents: ~Copyable {
  struct Event {
    enum Kind {
      case streamStart, streamEnd, documentStart, documentEnd, alias, sequenceStart, sequenceEnd, mappingStart,
        mappingEnd
      case scalar(String, isQuoted: Bool)
    }

    let kind: Kind
    /// From 1.
    let line: Int
    /// Whether it carries an anchor (`&name`) or a tag (`!name`).
    let isDecorated: Bool
  }

  private let parser: UnsafeMutablePointer<yaml_parser_t>
  private let input: UnsafeMutableBufferPointer<UInt8>

  /// `text` is UTF-8 by its type: libyaml is not left to guess the encoding.
  init(_ text: String) {
    unsafe input = .allocate(capacity: text.utf8.count)
    _ = unsafe input.initialize(from: text.utf8)
    unsafe parser = .allocate(capacity: 1)
    guard unsafe yaml_parser_initialize(parser) == 1 else { preconditionFailure("out of memory") }
    unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
    // libyaml reads from `input` until it is deleted: both end in deinit.
    unsafe yaml_parser_set_input_string(parser, input.baseAddress, input.count)
  }

  deinit {
    unsafe yaml_parser_delete(parser)
    unsafe parser.deallocate()
    unsafe input.deallocate()
  }

  /// The next event; the last one is `streamEnd`, after which there must be no further call.
  mutating func next() throws(YAMLFault) -> Event {
    var event = unsafe yaml_event_t()
    guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw fault }
    // The event is ours, with the memory that it points to, until it is deleted.
    defer { unsafe yaml_event_delete(&event) }
    let line = unsafe Int(event.start_mark.line) + 1
    var isDecorated = false
    let kind: Event.Kind
    switch unsafe event.type {
    case YAML_STREAM_START_EVENT: kind = .streamStart
    case YAML_STREAM_END_EVENT: kind = .streamEnd
    case YAML_DOCUMENT_START_EVENT: kind = .documentStart
    case YAML_DOCUMENT_END_EVENT: kind = .documentEnd
    case YAML_ALIAS_EVENT: kind = .alias
    case YAML_SEQUENCE_START_EVENT:
      let start = unsafe event.data.sequence_start
      isDecorated = unsafe start.anchor != nil || start.tag != nil
      kind = .sequenceStart
    case YAML_SEQUENCE_END_EVENT: kind = .sequenceEnd
    case YAML_MAPPING_START_EVENT:
      let start = unsafe event.data.mapping_start
      isDecorated = unsafe start.anchor != nil || start.tag != nil
      kind = .mappingStart
    case YAML_MAPPING_END_EVENT: kind = .mappingEnd
    case YAML_SCALAR_EVENT:
      let scalar = unsafe event.data.scalar
      isDecorated = unsafe scalar.anchor != nil || scalar.tag != nil
      let bytes = unsafe UnsafeBufferPointer(start: scalar.value, count: scalar.length)
      let text = unsafe String(decoding: bytes, as: UTF8.self)
      kind = unsafe .scalar(text, isQuoted: scalar.style != YAML_PLAIN_SCALAR_STYLE)
    default: throw YAMLFault(line: line, message: "not YAML")
    }
    return Event(kind: kind, line: line, isDecorated: isDecorated)
  }

  /// Why the parser gave up, in libyaml's words, which quote nothing of the file.
  private var fault: YAMLFault {
    let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "unreadable"
    // The last line that has anything: at its end libyaml counts one more.
    let lastLine = unsafe input.dropLast().count { $0 == UInt8(ascii: "\n") } + 1
    var line = unsafe min(Int(parser.pointee.problem_mark.line) + 1, lastLine)
    if unsafe parser.pointee.error == YAML_READER_ERROR {
      // The reader knows the byte, not the line.
      let end = unsafe min(parser.pointee.problem_offset, input.count)
      line = unsafe input[..<end].count { $0 == UInt8(ascii: "\n") } + 1
    }
    return YAMLFault(line: line, message: "not YAML: \(problem)")
  }
}

/// What is wrong with a file, and where.
struct YAMLFault: Error, Equatable {
  let line: Int
  let message: String
}
