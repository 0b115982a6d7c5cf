import Cryptography
import HTTPServer

/// A page in HTML, for people.
struct Page {
  /// What is in the head and the heading.
  let title: String
  /// HTML.
  let body: String
  /// Whether the first form of the body is sent without anybody's doing.
  var sendsItself = false

  private static let script = "document.forms[0].submit()"
  private static let style = """
    body{font:16px/1.4 system-ui,sans-serif;max-width:30rem;margin:3rem auto;padding:0 1rem;color:#1d1d1f}
    h1{font-size:1.4rem}label{display:block;margin:.6rem 0}input:not([type=radio]){display:block;width:100%;\
    box-sizing:border-box;padding:.5rem;font:inherit}fieldset{border:1px solid #ccc;margin:.8rem 0}\
    button{font:inherit;padding:.5rem 1.2rem;margin:.4rem .4rem .4rem 0}.fault{color:#b00020}\
    footer{margin-top:2rem;color:#6e6e73;font-size:.85rem}
    """

  /// The page as an answer. Whatever the body is, no script runs but our own.
  func response(status: Int = 200) -> HTTPResponse {
    let hash = Base64.encode(SHA256.digest(of: [UInt8](Self.script.utf8)).bytes)
    let script = sendsItself ? "<script>\(Self.script)</script>" : ""
    let text = """
      <!DOCTYPE html>
      <html lang="en"><head><meta charset="utf-8"><title>\(escaped(title))</title><style>\(Self.style)</style></head>
      <body><h1>\(escaped(title))</h1>
      \(body)
      \(script)<footer>A simulated Apple, for rehearsals. Nobody here is Apple.</footer></body></html>

      """
    return HTTPResponse(
      status: status,
      headers: [
        ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
        // The pages' own forms tell their origin: `no-referrer` would hide it from the pages, too.
        ("Referrer-Policy", "strict-origin"),
        (
          "Content-Security-Policy",
          "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-\(hash)'; frame-ancestors 'none'; "
            + "base-uri 'none'"
        ),
      ], body: .bytes([UInt8](text.utf8)))
  }
}

/// The text as HTML has it, in an element or in an attribute between quotation marks.
func escaped(_ text: String) -> String {
  var result = ""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "&": result += "&amp;"
    case "<": result += "&lt;"
    case ">": result += "&gt;"
    case "\"": result += "&quot;"
    case "'": result += "&#39;"
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}

/// A field of a form that nobody sees.
func hiddenField(_ name: String, _ value: String) -> String {
  "<input type=\"hidden\" name=\"\(escaped(name))\" value=\"\(escaped(value))\">"
}

/// The text as a query or a fragment has it: all but unreserved characters in their escapes (RFC 3986 §2.3).
func percentEncoded(_ text: String) -> String {
  let digits = Array("0123456789ABCDEF")
  var result = ""
  for byte in text.utf8 {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: result.unicodeScalars.append(.init(byte))
    default: result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
    }
  }
  return result
}
