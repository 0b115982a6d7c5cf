import CLibrdkafka
import EventLoop
import Glibc

/// The token with which a client authenticates by SASL/OAUTHBEARER: from a file that somebody else keeps up to date, such
/// as an agent of the identity provider.
enum OAuthBearerToken {
  /// The property that names the file.
  static let property = "sasl.oauthbearer.token.file"

  /// How long librdkafka takes a token for good, so that it asks for the next one: it does at four fifths of that. How
  /// long the token really holds the broker decides, who ends the connection of one that is over.
  private static let lifetime: Int64 = 60_000
  private static let mostBytes = 65_536
  /// Kafka's name for whoever has the token is in the token; this one librdkafka only logs.
  private static let principal = "token"

  /// What is wrong with the file, if anything.
  static func fault(inFile path: String) -> String? {
    if case .failure(let fault) = read(path) { "expected the path of a file with a token: \(fault.words)" } else { nil }
  }

  /// Has the client ask for tokens on a thread of its own, where its mechanism needs any. Whoever asks finds the path in
  /// the client's configuration.
  static func prepare(_ settings: borrowing ClientConfiguration, for configuration: KafkaConfiguration) {
    guard let path = configuration.tokenFile, settings["sasl.mechanisms"]?.uppercased() == "OAUTHBEARER" else { return }
    _ = settings.set("sasl.oauthbearer.config", path)
    unsafe rd_kafka_conf_enable_sasl_queue(settings.pointer, 1)
    unsafe rd_kafka_conf_set_oauthbearer_token_refresh_cb(settings.pointer) { client, path, _ in
      guard let client = unsafe client, let path = unsafe path else { return }
      unsafe OAuthBearerToken.renew(client, from: String(cString: path))
    }
  }

  /// Lets the client ask, once it is there.
  static func serve(_ client: OpaquePointer, for configuration: KafkaConfiguration) {
    guard configuration.tokenFile != nil else { return }
    // An error says that its mechanism needs none.
    if let error = unsafe rd_kafka_sasl_background_callbacks_enable(client) { unsafe rd_kafka_error_destroy(error) }
  }

  private static func renew(_ client: OpaquePointer, from path: String) {
    let problem: String
    switch read(path) {
    case .success(let token):
      var now = timespec()
      unsafe clock_gettime(CLOCK_REALTIME, &now)
      let end = Int64(now.tv_sec) * 1000 + lifetime
      var words = [CChar](repeating: 0, count: 512)
      let result = unsafe rd_kafka_oauthbearer_set_token(
        client, token, end, principal, nil, 0, &words, words.count)
      if result == RD_KAFKA_RESP_ERR_NO_ERROR { return }
      // librdkafka's words could quote the token.
      problem = "\(path) holds no token as RFC 6750 has them"
    case .failure(let fault):
      problem = fault.words
    }
    // librdkafka asks again after ten seconds.
    unsafe rd_kafka_oauthbearer_set_token_failure(client, problem)
  }

  private struct Fault: Error { let words: String }

  private static func read(_ path: String) -> Result<String, Fault> {
    // Not blocking: of a pipe, the other end may never come.
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      return .failure(Fault(words: "\(path) cannot be opened: \(SystemError.current)"))
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: mostBytes + 1)
    var count = 0
    while count < bytes.count {
      let room = bytes.count - count
      let read = unsafe bytes.withUnsafeMutableBytes { bytes in
        unsafe Glibc.read(descriptor, bytes.baseAddress?.advanced(by: count), room)
      }
      if read < 0, errno == EINTR { continue }
      guard read >= 0 else { return .failure(Fault(words: "\(path) cannot be read: \(SystemError.current)")) }
      if read == 0 { break }
      count += read
    }
    let token = bytes.prefix(count).filter { $0 > 0x20 }
    guard !token.isEmpty, count <= mostBytes, token.allSatisfy({ $0 < 0x7f }) else {
      return .failure(Fault(words: "\(path) holds no token"))
    }
    return .success(String(decoding: token, as: UTF8.self))
  }
}
