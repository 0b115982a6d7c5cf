public import EventLoop

/// Everything that an `HTTPServer` is told before it starts.
public struct HTTPServerConfiguration: Sendable {
  /// Where to listen; port 0 lets the system choose.
  public var address: SocketAddress
  /// The certificate; nil for plain HTTP, which belongs on loopback only.
  public var tls: TLSServerConfiguration?
  /// How much peers may send.
  public var limits: HTTPServerLimits
  /// How long peers may take.
  public var deadlines: HTTPServerDeadlines
  /// Whether other processes may listen on the same port (SO_REUSEPORT).
  public var sharesPort: Bool
  /// From which addresses proxies connect that say with the PROXY protocol whom they forward; there are none unless
  /// somebody says so. A connection of theirs has to begin with its header, and no other may.
  public var proxies: [AddressRange] = []
  /// What a peer is told whose request cannot be read, or did not come in time; the connection ends with it. In plain text
  /// unless somebody says otherwise.
  public var refusal: @Sendable (MessageRefusal) -> HTTPResponse = { .refusal($0) }
  /// How long a peer that has connected may take to its first request while the server drains, and a newcomer is safe
  /// from being closed where there are too many: a few ways to the other side of the earth and back.
  public var grace = Duration.seconds(1)
  /// How many connections are taken though the process has no descriptors left: for what must always be reachable.
  public var spareDescriptors = 0

  /// A configuration without any default: every limit and deadline is a decision.
  public init(
    address: SocketAddress, tls: TLSServerConfiguration?, limits: HTTPServerLimits, deadlines: HTTPServerDeadlines,
    sharesPort: Bool
  ) {
    self.address = address
    self.tls = tls
    self.limits = limits
    self.deadlines = deadlines
    self.sharesPort = sharesPort
  }
}

/// Where a server's certificate is.
public struct TLSServerConfiguration: Sendable, Equatable {
  /// A PEM file: the certificate first, then the chain.
  public var certificateFile: String
  /// A PEM file with the private key, not encrypted.
  public var privateKeyFile: String

  /// Names the two files; they are read when the server is made.
  public init(certificateFile: String, privateKeyFile: String) {
    self.certificateFile = certificateFile
    self.privateKeyFile = privateKeyFile
  }

  /// Reads both files as a server does that is made with them. Throws `.certificate`, `.privateKey` or `.tls` where none
  /// could be. Returns the issuer of a certificate that stands in its file alone, though another one has signed it.
  public func check() throws(HTTPServerError) -> String? { try TLSContext(self).missingIssuer }
}

/// Why a server could not be made.
public struct HTTPServerError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What failed.
  public enum Code: String, Sendable {
    /// The address is taken, not of this machine, or not permitted.
    case listen
    /// The certificate file cannot be read or holds no certificate.
    case certificate
    /// The key file cannot be read, holds no key, or not the certificate's.
    case privateKey = "private-key"
    /// OpenSSL refused something else.
    case tls
  }

  /// What failed.
  public let code: Code
  /// In words, with the file or the address.
  public let message: String

  /// For people: what failed and why.
  public var description: String { message }
}
