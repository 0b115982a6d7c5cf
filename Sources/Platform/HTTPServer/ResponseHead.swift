import EventLoop
import Glibc

/// Writes an answer's head.
@Loop
struct ResponseHead {
  /// How the body that follows is delimited.
  enum Delimiter {
    case length(Int)
    case chunked
    case close
    case nothing
  }

  /// Appends the head to `out`.
  static func append(
    _ response: HTTPResponse, delimiter: Delimiter, keepsAlive: Bool, isHTTP11: Bool, to out: inout [UInt8]
  ) {
    precondition(200...599 ~= response.status, "an answer has a final status")
    append("HTTP/1.1 ", to: &out)
    append(number: response.status, to: &out)
    append(" ", to: &out)
    append(reason(response.status), to: &out)
    append("\r\nDate: ", to: &out)
    out.append(contentsOf: HTTPDate.current())
    switch delimiter {
    case .length(let count):
      append("\r\nContent-Length: ", to: &out)
      append(number: count, to: &out)
    case .chunked: append("\r\nTransfer-Encoding: chunked", to: &out)
    case .close, .nothing: break
    }
    if !keepsAlive {
      append("\r\nConnection: close", to: &out)
    } else if !isHTTP11 {
      append("\r\nConnection: keep-alive", to: &out)
    }
    for (name, value) in response.headers {
      precondition(!isReserved(name), "\(name) is the server's own to set")
      append("\r\n", to: &out)
      append(text: name, to: &out)
      append(": ", to: &out)
      append(text: value, to: &out)
    }
    append("\r\n\r\n", to: &out)
  }

  /// Whether the server sets this field itself: one more would let readers disagree about where the answer ends.
  private static func isReserved(_ name: String) -> Bool {
    switch name.utf8.count {
    case 4: has(name, "date")
    case 10: has(name, "connection")
    case 14: has(name, "content-length")
    case 17: has(name, "transfer-encoding")
    default: false
    }
  }

  private static func has(_ name: String, _ lowered: StaticString) -> Bool {
    for (offset, byte) in name.utf8.enumerated()
    where unsafe Characters.lowered(byte) != lowered.utf8Start[offset] { return false }
    return true
  }

  /// Whether an answer of this status may have a body (RFC 9110, sections 6.4.1 and 8.6: nor a length of one).
  static func hasContent(_ status: Int) -> Bool { status != 204 && status != 304 }

  static func append(_ text: StaticString, to out: inout [UInt8]) {
    unsafe out.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private static func append(text: String, to out: inout [UInt8]) {
    var text = text
    text.withUTF8 { bytes in
      for index in bytes.indices {
        let byte = unsafe bytes[index]
        precondition(byte != 0x0d && byte != 0x0a, "a line break in a header of ours")
      }
      unsafe out.append(contentsOf: bytes)
    }
  }

  static func append(number: Int, radix: Int = 10, to out: inout [UInt8]) {
    var divisor = 1
    while number / divisor >= radix { divisor *= radix }
    while divisor > 0 {
      let digit = UInt8(number / divisor % radix)
      out.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
      divisor /= radix
    }
  }

  private static func reason(_ status: Int) -> StaticString {
    switch status {
    case 200: "OK"
    case 201: "Created"
    case 202: "Accepted"
    case 204: "No Content"
    case 303: "See Other"
    case 304: "Not Modified"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 408: "Request Timeout"
    case 409: "Conflict"
    case 410: "Gone"
    case 413: "Content Too Large"
    case 415: "Unsupported Media Type"
    case 417: "Expectation Failed"
    case 422: "Unprocessable Content"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 501: "Not Implemented"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    case 504: "Gateway Timeout"
    case 505: "HTTP Version Not Supported"
    default: "Unnamed"
    }
  }
}

/// The value of the Date field (RFC 9110, section 5.6.7), formed once a second.
@Loop
private enum HTTPDate {
  private static var second = 0
  private static var text: [UInt8] = []

  static func current() -> [UInt8] {
    let now = time(nil)
    if now != second {
      second = now
      text = format(now)
    }
    return text
  }

  private static func format(_ moment: Int) -> [UInt8] {
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let (day, second) = (moment / 86_400, moment % 86_400)
    let (year, month, dayOfMonth) = civilDate(day)
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let time = "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
    return Array("\(days[day % 7]), \(two(dayOfMonth)) \(months[month - 1]) \(year) \(time) GMT".utf8)
  }

  /// The date of the given day since 1970-01-01, in the Gregorian calendar: years are counted from March, so that the
  /// leap day is the last of its year.
  private static func civilDate(_ day: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = day + 719_468
    let (era, dayOfEra) = (shifted / 146_097, shifted % 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
  }
}
