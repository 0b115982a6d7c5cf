import CLibcurl

/// Why there is no answer. An answer with a bad status is an answer.
public struct HTTPClientError: Error, Sendable, CustomStringConvertible {
  /// The closed list of reasons; the raw value is the label of a metric and the key in a log.
  public enum Code: String, Sendable, CaseIterable {
    /// The request's deadline passed.
    case deadline
    /// The answer's head or body is larger than allowed.
    case tooLarge = "too-large"
    /// The host's name could not be resolved.
    case name
    /// No connection came to stand in time.
    case connect
    /// The proxy did not let us through.
    case proxy
    /// TLS could not be agreed on.
    case tls
    /// The server's certificate is not one that we believe, or not for this host.
    case certificate
    /// The file with the trust anchors cannot be read.
    case trustAnchors = "trust-anchors"
    /// The connection broke before the answer was whole.
    case interrupted
    /// What came is no HTTP/1.1.
    case malformedAnswer = "malformed-answer"
    /// The request cannot be sent as it is.
    case malformedRequest = "malformed-request"
    /// More requests are on their way than the configuration allows.
    case overloaded
    /// This process has no memory or no descriptors left.
    case resources
    /// The task that asked was cancelled.
    case cancelled
    /// The client was closed.
    case closed
  }

  /// Which reason it is.
  public let code: Code
  /// libcurl's words, or ours: printable ASCII, of bounded length. They may name host and port, and hold no path, query,
  /// header or body.
  public let detail: String

  init(_ code: Code, _ detail: String) {
    self.code = code
    self.detail = detail
  }

  static let closed = HTTPClientError(.closed, "the client was closed")

  /// Whether the same request may succeed a little later, with nobody changing anything on our side.
  public var isRetriable: Bool {
    switch code {
    case .deadline, .name, .connect, .proxy, .tls, .interrupted, .malformedAnswer, .overloaded, .resources: true
    case .tooLarge, .certificate, .trustAnchors, .malformedRequest, .cancelled, .closed: false
    }
  }

  /// The code and the detail.
  public var description: String { "\(code.rawValue): \(detail)" }

  /// Translates what libcurl reports for a transfer that failed; `detail` is the text that it left, if it left one.
  init(_ result: CURLcode, detail: String) {
    let code: Code =
      switch result {
      case CURLE_COULDNT_RESOLVE_HOST: .name
      case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy
      // The deadline is the loop's: the only time that libcurl measures is that of the connection.
      case CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT: .connect
      case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER: .tls
      case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ISSUER_ERROR: .certificate
      case CURLE_SSL_CACERT_BADFILE: .trustAnchors
      case CURLE_FILESIZE_EXCEEDED, CURLE_WRITE_ERROR: .tooLarge
      // The last two are a request that libcurl would repeat, and must not.
      case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_SEND_FAIL_REWIND,
        CURLE_ABORTED_BY_CALLBACK:
        .interrupted
      case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING: .malformedAnswer
      case CURLE_URL_MALFORMAT: .malformedRequest
      default: .resources
      }
    let words = detail.isEmpty ? unsafe String(cString: curl_easy_strerror(result)) : detail
    let printable = words.utf8.prefix(200).map { $0 >= 0x20 && $0 < 0x7f ? $0 : UInt8(ascii: "?") }
    self.init(code, String(decoding: printable, as: UTF8.self))
  }
}
