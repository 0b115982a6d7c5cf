/// A whole answer, as it came: no redirect followed, no encoding undone.
public struct HTTPClientResponse: Sendable {
  /// The status code.
  public let status: Int
  /// The headers in their order. Bytes that are not UTF-8 are replaced.
  public let headers: [(name: String, value: String)]
  /// The body, within the size that the request allowed.
  public let body: [UInt8]

  /// An answer, made up where no server is asked.
  public init(status: Int, headers: [(name: String, value: String)], body: [UInt8]) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The value of the first header of that name, in whatever case it is spelled.
  public func header(_ name: String) -> String? {
    let wanted = name.lowercased()
    return headers.first { $0.name.lowercased() == wanted }?.value
  }
}
