package import Configuration

/// Where records wait that Kafka does not take in time.
package struct SpoolSettings: Configurable, Equatable {
  /// The directory, which one process at a time may have.
  package var directory: String
  /// How many bytes it may hold.
  package var size: Int
  /// How long the broker may take before a record goes there.
  package var after: Duration

  /// Everything said, nothing assumed.
  package init(directory: String, size: Int, after: Duration) {
    (self.directory, self.size, self.after) = (directory, size, after)
  }

  /// Reads `ingress.spool`.
  package init(reading settings: inout Settings) {
    directory = settings.read(
      "ingress.spool.directory", .path, default: "/var/lib/siwa/spool",
      "Where notifications wait that Kafka does not take in time; each process needs a directory of its own.")
    size = settings.read(
      "ingress.spool.size", .byteSize(1 << 20...1 << 40), default: 1 << 30,
      "How much may wait there; beyond it: 503. Its files take up to a quarter more, and 20 MiB; twice as much where records exceed 4 KiB."
    )
    after = settings.read(
      "ingress.spool.after", .duration(.milliseconds(10) ... .seconds(60)), default: .seconds(1),
      "How long the broker may take before a notification is written to the spool instead.")
  }
}
