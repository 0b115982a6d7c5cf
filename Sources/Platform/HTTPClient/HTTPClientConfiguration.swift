/// What holds for all requests of a client.
public struct HTTPClientConfiguration: Sendable {
  /// Whose certificates are believed.
  public enum TrustAnchors: Sendable, Hashable {
    /// Those of the operating system: the bundle or the directory that SSL_CERT_FILE or SSL_CERT_DIR names, or else
    /// those of the distribution. A bundle that is replaced counts within the hour.
    case system
    /// Those of the operating system's directory, and those in a PEM file: for a rehearsal, where somebody else plays the
    /// server. They are read for each connection.
    case systemAnd(file: String)
  }

  /// The way to the server.
  public enum Proxy: Sendable, Hashable {
    /// Straight to it, whatever the environment says.
    case none
    /// As the variables `https_proxy`, `all_proxy` and `no_proxy` say. Loopback is always asked directly.
    case environment
  }

  /// What every request carries as `User-Agent`: Apple refuses requests without.
  public var userAgent: String
  /// Whose certificates are believed.
  public var trustAnchors: TrustAnchors
  /// The way to the server.
  public var proxy: Proxy
  /// How long a connection may take to stand: name, TCP and TLS together.
  public var connectTimeout: Duration
  /// How many connections there may be, idle ones included. Requests beyond wait for one, within their deadline.
  public var maximumConnections: Int
  /// How many requests may be on their way or waiting: beyond, `send` fails with `.overloaded`.
  public var maximumRequests: Int
  /// How many bytes the head of an answer may have, with its interim answers and trailers.
  public var maximumHeadSize: Int

  /// A configuration for requests to a few hosts; `maximumHeadSize` is what Apple's edge needs, many times over.
  public init(
    userAgent: String, trustAnchors: TrustAnchors, proxy: Proxy, connectTimeout: Duration, maximumConnections: Int,
    maximumRequests: Int, maximumHeadSize: Int = 32_768
  ) {
    precondition(!userAgent.isEmpty && HTTPClientRequest.isFieldValue(userAgent), "a User-Agent that is no header")
    precondition(maximumConnections > 0 && maximumRequests > 0 && maximumHeadSize > 0, "a limit of nothing")
    self.userAgent = userAgent
    self.trustAnchors = trustAnchors
    self.proxy = proxy
    self.connectTimeout = connectTimeout
    self.maximumConnections = maximumConnections
    self.maximumRequests = maximumRequests
    self.maximumHeadSize = maximumHeadSize
  }
}
