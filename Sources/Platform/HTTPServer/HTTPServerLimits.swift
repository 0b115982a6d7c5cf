/// How much a peer may send, and how many may be connected.
public struct HTTPServerLimits: Sendable, Equatable {
  /// Bytes of the request line and all header fields together; beyond it: 431.
  public var head: Int
  /// Number of header fields; beyond it: 431.
  public var fields: Int
  /// Bytes of a body, whatever a handler asks for; beyond it: 413.
  public var body: Int
  /// Connections in all. While they are reached, the one that has been here for longest without a good request makes
  /// room; where there is none, the kernel's queue holds whoever knocks. Never more than the descriptors of the process
  /// allow: see `DescriptorLimit`.
  public var connections: Int
  /// Connections from one address, or from one /64 network of IPv6; a further one is closed at once. Of a connection
  /// that a proxy forwards, the address is the one that the proxy names.
  public var connectionsPerAddress: Int

  /// The limits, each of them at least 1.
  public init(head: Int, fields: Int, body: Int, connections: Int, connectionsPerAddress: Int) {
    self.head = head
    self.fields = fields
    self.body = body
    self.connections = connections
    self.connectionsPerAddress = connectionsPerAddress
  }
}

/// How long a peer may take.
public struct HTTPServerDeadlines: Sendable, Equatable {
  /// From accept to the end of the TLS handshake.
  public var handshake: Duration
  /// From a request's first byte to the end of its head.
  public var head: Duration
  /// From the moment that a handler asks for the body to its last byte.
  public var body: Duration
  /// From the end of one request, or of the handshake, to the first byte of the next.
  public var idle: Duration
  /// From a request's first byte to the last byte of its answer.
  public var request: Duration
  /// How long the end of a connection is put off after its last answer.
  public var linger: Linger

  /// For how long the end of a connection is put off after its last answer, so that a peer that is still sending gets it.
  public struct Linger: Sendable, Equatable {
    /// Since the peer's last bytes, where its request was complete.
    public var silence: Duration
    /// Since the peer's last bytes, where more of its request was to come.
    public var silenceOfASender: Duration
    /// In all.
    public var total: Duration

    /// The times, each of them positive.
    public init(
      silence: Duration = .seconds(1), silenceOfASender: Duration = .seconds(5), total: Duration = .seconds(30)
    ) {
      self.silence = silence
      self.silenceOfASender = silenceOfASender
      self.total = total
    }
  }

  /// The deadlines, each of them positive.
  public init(
    handshake: Duration, head: Duration, body: Duration, idle: Duration, request: Duration, linger: Linger = Linger()
  ) {
    self.handshake = handshake
    self.head = head
    self.body = body
    self.idle = idle
    self.request = request
    self.linger = linger
  }
}
