/// What is made from settings: the settings of one component, or of a whole program.
///
/// Reading declares: every setting is read, with its type, default and line of help, in `init(reading:)`, whatever the
/// others say. From that one place come parsing, `--help`, the table of settings, and the check.
public protocol Configurable: Sendable {
  /// Reads the settings. What is faulty is collected in `settings`, and the value made here is then never used.
  init(reading settings: inout Settings)
}
