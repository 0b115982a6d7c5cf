import CLibcurl
import EventLoop

/// One request on its way: owns the easy handle of libcurl, and collects what comes.
@Loop
@safe final class Transfer: Identifiable {
  /// The handle's address: what libcurl names a transfer by.
  struct ID: Hashable {
    private let address: UInt
    init(_ handle: UnsafeMutableRawPointer) { address = UInt(bitPattern: handle) }
  }

  nonisolated let id: ID
  /// libcurl's easy handle.
  let handle: UnsafeMutableRawPointer
  /// Fires when the request has taken too long; `TransferSet` sets it.
  let deadline = Deadline()
  /// Who waits for the answer.
  var waiter: CheckedContinuation<Result<HTTPClientResponse, HTTPClientError>, Never>?
  /// Why it must not even start.
  var refusal: HTTPClientError?

  private var headerList: UnsafeMutablePointer<curl_slist>?
  private let errorText: UnsafeMutablePointer<CChar>
  private let maximumHeadSize: Int
  private let maximumBodySize: Int
  private var headSize = 0
  private var body: [UInt8] = []
  /// What is left to send of a request that must not be repeated; nil once libcurl has taken all of it.
  private var unsent: ArraySlice<UInt8>?

  /// Prepares the handle; nothing is sent yet.
  init(_ request: HTTPClientRequest, _ configuration: HTTPClientConfiguration) throws(HTTPClientError) {
    guard let handle = unsafe curl_easy_init() else { throw HTTPClientError(.resources, "no handle for a transfer") }
    unsafe self.handle = handle
    id = unsafe ID(handle)
    unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    maximumHeadSize = configuration.maximumHeadSize
    maximumBodySize = request.maximumBodySize
    try apply(configuration, for: request.url)
    try apply(request)
    try collectHere()
  }

  isolated deinit {
    unsafe curl_easy_cleanup(handle)
    unsafe curl_slist_free_all(headerList)
    unsafe errorText.deallocate()
  }

  /// The answer, after libcurl has reported the end of the transfer with `result`.
  func outcome(_ result: CURLcode) -> Result<HTTPClientResponse, HTTPClientError> {
    guard result == CURLE_OK else {
      return .failure(HTTPClientError(result, detail: unsafe String(cString: errorText)))
    }
    var status = 0
    unsafe clibcurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    return .success(HTTPClientResponse(status: status, headers: receivedHeaders(), body: body))
  }

  /// The headers of the answer itself, without those of interim answers, of a proxy, or behind the body.
  private func receivedHeaders() -> [(name: String, value: String)] {
    var headers: [(name: String, value: String)] = []
    var previous: UnsafeMutablePointer<curl_header>?
    while let header = unsafe curl_easy_nextheader(handle, UInt32(CURLH_HEADER), -1, previous) {
      headers.append(
        (name: unsafe String(cString: header.pointee.name), value: unsafe String(cString: header.pointee.value)))
      unsafe previous = header
    }
    return headers
  }

  private func apply(_ configuration: HTTPClientConfiguration, for url: HTTPClientURL) throws(HTTPClientError) {
    try set(CURLOPT_NOSIGNAL, 1)
    // Without it, giving up while a name is looked up would wait for the look-up's thread, and the loop with it.
    try set(CURLOPT_QUICK_EXIT, 1)
    try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    try set(CURLOPT_HTTP09_ALLOWED, 0)
    try set(CURLOPT_FOLLOWLOCATION, 0)
    try set(CURLOPT_HTTP_CONTENT_DECODING, 0)
    try set(CURLOPT_PROTOCOLS_STR, url.isEncrypted ? "https" : "http")
    try set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
    try set(CURLOPT_SSL_VERIFYPEER, 1)
    try set(CURLOPT_SSL_VERIFYHOST, 2)
    switch configuration.trustAnchors {
    case .system:
      try set(CURLOPT_CAINFO, SystemTrustAnchors.found.bundle)
      try set(CURLOPT_CAPATH, SystemTrustAnchors.found.directory)
      // For this long libcurl keeps a bundle parsed, for all connections: 24 ms once instead of for each of them.
      try set(CURLOPT_CA_CACHE_TIMEOUT, 3600)
    case .systemAnd(let file): try set(CURLOPT_CAINFO, file)
    }
    if url.isLoopback || configuration.proxy == .none { try set(CURLOPT_PROXY, "") }
    try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    try set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(configuration.connectTimeout.wholeNanoseconds / 1_000_000)))
    try set(CURLOPT_USERAGENT, configuration.userAgent)
  }

  private func apply(_ request: HTTPClientRequest) throws(HTTPClientError) {
    try set(CURLOPT_URL, request.url.text)
    // Where nobody may know what came of it, a connection is only trusted that was used a moment ago.
    // Without a body there is nothing that could be kept back from a repetition; libcurl repeats nothing on a new
    // connection.
    if !request.isRepeatable {
      if request.body.isEmpty { try set(CURLOPT_FRESH_CONNECT, 1) } else { try set(CURLOPT_MAXAGE_CONN, 5) }
    }
    switch request.method {
    case .get: try set(CURLOPT_HTTPGET, 1)
    case .delete: try set(CURLOPT_CUSTOMREQUEST, "DELETE")
    case .post:
      try set(CURLOPT_POST, 1)
      try check(unsafe clibcurl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count)))
      if request.isRepeatable { try copy(request.body) } else { try sendOnce(request.body) }
      // Neither what libcurl would guess about the body, nor a round trip before it.
      try append("Expect:")
      if !request.headers.contains(where: { $0.name.lowercased() == "content-type" }) { try append("Content-Type:") }
    }
    for (name, value) in request.headers { try append(value.isEmpty ? "\(name);" : "\(name): \(value)") }
    try check(unsafe clibcurl_set_list(handle, CURLOPT_HTTPHEADER, headerList))
    // Refused as soon as Content-Length says it; `receive` counts what comes without. 0 would be no limit.
    if maximumBodySize > 0 {
      try check(unsafe clibcurl_set_size(handle, CURLOPT_MAXFILESIZE_LARGE, curl_off_t(maximumBodySize)))
    }
  }

  /// Leaves the body to libcurl, which sends it again by itself where a connection dies that was used before.
  private func copy(_ body: [UInt8]) throws(HTTPClientError) {
    let copied = unsafe body.withUnsafeBytes { bytes in
      // An empty array may have no address, and libcurl reads none as "ask the read callback".
      guard let base = bytes.baseAddress else { return unsafe clibcurl_set_text(handle, CURLOPT_COPYPOSTFIELDS, "") }
      return unsafe clibcurl_set_pointer(handle, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: base))
    }
    try check(copied)
  }

  /// Gives libcurl the body a single time. Where a connection dies that was used before, it asks for it once more, and gets
  /// the request's end instead: a server that had none of the body can have done nothing.
  private func sendOnce(_ body: [UInt8]) throws(HTTPClientError) {
    unsent = body[...]
    try check(
      unsafe clibcurl_set_pointer(handle, CURLOPT_READDATA, Unmanaged.passUnretained(self).toOpaque()))
    try check(
      unsafe clibcurl_set_sink(handle, CURLOPT_READFUNCTION) { room, size, count, here in
        unsafe Transfer.on(here) { unsafe $0.send(room, size * count) }
      })
  }

  /// Hands over the next piece of the body; what comes behind its end is a repetition.
  private func send(_ room: UnsafeMutablePointer<CChar>?, _ size: Int) -> Int {
    guard let rest = unsent, let room = unsafe room else { return Int(CURL_READFUNC_ABORT) }
    let piece = rest.prefix(size)
    unsafe UnsafeMutableRawBufferPointer(start: room, count: size).copyBytes(from: piece)
    unsent = piece.count < rest.count ? rest[piece.endIndex...] : nil
    return piece.count
  }

  /// Makes libcurl hand to this object what it receives. The object outlives the transfer: `TransferSet` holds it.
  private func collectHere() throws(HTTPClientError) {
    let here = unsafe Unmanaged.passUnretained(self).toOpaque()
    try check(unsafe clibcurl_set_pointer(handle, CURLOPT_ERRORBUFFER, errorText))
    try check(unsafe clibcurl_set_pointer(handle, CURLOPT_WRITEDATA, here))
    try check(unsafe clibcurl_set_pointer(handle, CURLOPT_HEADERDATA, here))
    try check(
      unsafe clibcurl_set_sink(handle, CURLOPT_WRITEFUNCTION) { bytes, size, count, here in
        unsafe Transfer.on(here) { unsafe $0.receive(bytes, size * count) }
      })
    try check(
      unsafe clibcurl_set_sink(handle, CURLOPT_HEADERFUNCTION) { _, size, count, here in
        unsafe Transfer.on(here) { $0.countHead(size * count) }
      })
  }

  /// Takes a piece of the body. Another result than `count` makes libcurl give up with CURLE_WRITE_ERROR.
  private func receive(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
    guard count <= maximumBodySize - body.count else { return 0 }
    unsafe body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
    return count
  }

  /// Counts a line of a head; libcurl keeps it for `receivedHeaders`.
  private func countHead(_ count: Int) -> Int {
    headSize += count
    return headSize <= maximumHeadSize ? count : 0
  }

  private nonisolated static func on(_ context: UnsafeMutableRawPointer?, _ body: @Loop (Transfer) -> Int) -> Int {
    guard let context = unsafe context else { return 0 }
    let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return Loop.assumeIsolated { body(transfer) }
  }

  private func append(_ header: String) throws(HTTPClientError) {
    guard let longer = unsafe curl_slist_append(headerList, header) else {
      throw HTTPClientError(.resources, "no memory for a header")
    }
    unsafe headerList = longer
  }

  private func set(_ option: CURLoption, _ value: Int) throws(HTTPClientError) {
    try check(unsafe clibcurl_set_long(handle, option, value))
  }

  /// libcurl copies the text.
  private func set(_ option: CURLoption, _ value: String?) throws(HTTPClientError) {
    try check(unsafe clibcurl_set_text(handle, option, value))
  }

  private func check(_ result: CURLcode) throws(HTTPClientError) {
    guard result == CURLE_OK else { throw HTTPClientError(result, detail: "") }
  }
}
