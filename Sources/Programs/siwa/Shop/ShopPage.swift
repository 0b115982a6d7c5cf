import AccountServices
import Cryptography
import HTTPServer

/// A page of the shop in Markup. No script runs but its own, which gets what has changed, and nothing comes from elsewhere.
struct ShopPage {
  /// What is in it, below the name of the shop.
  let body: Markup
  /// Whether it goes on to show what changes.
  var isLive = false

  /// The browser gets the part that lives as soon as it is another one.
  private static let script = """
    setInterval(async () => {
      const live = document.getElementById('live')
      const answer = await fetch('/live?' + live.dataset.version).catch(() => null)
      if (answer && answer.status === 200) live.outerHTML = await answer.text()
    }, 500)
    """
  // The button follows Apple's guidelines: black, white words of 43 % of its height, corners, a margin. Apple's logo belongs
  // on it, too, and is Apple's to give: https://appleid.apple.com/signinwithapple/button
  private static let style = """
    body{font:16px/1.45 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#1d1d1f}
    h1{font-size:1.5rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin:1.4rem 0 .4rem}p{margin:.5rem 0}
    .apple{display:inline-block;background:#000;color:#fff;font-size:19px;font-weight:500;line-height:44px;height:44px;
    min-width:210px;padding:0 16px;border-radius:8px;text-align:center;text-decoration:none;margin:1rem 0}
    table{border-collapse:collapse}th{text-align:left;font-weight:500;color:#6e6e73;padding:.15rem 1.2rem .15rem 0}
    td{padding:.15rem 0;overflow-wrap:anywhere}form{display:inline}ol{list-style:none;padding:0;margin:0}
    button{font:inherit;padding:.4rem 1rem;margin:.4rem .4rem .4rem 0;border:1px solid #999;border-radius:8px;
    background:#fff}.danger{border-color:#b00020;color:#b00020}.notice{background:#f5f5f7;border-radius:8px;
    padding:.8rem 1rem}li{padding:.15rem 0}li.outcome{padding-left:1.6rem;color:#424245}time{color:#6e6e73;
    font-variant-numeric:tabular-nums}footer{margin-top:2rem;color:#6e6e73;font-size:.85rem}
    """
  private static let policy =
    "default-src 'none'; style-src '\(hash(of: style))'; script-src '\(hash(of: script))'; connect-src 'self'; "
    + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

  /// What Content-Security-Policy names a script or a style by.
  private static func hash(of text: String) -> String {
    "sha256-" + Base64.encode(SHA256.digest(of: Array(text.utf8)).bytes)
  }

  /// The page as an answer.
  func response(status: Int = 200) -> HTTPResponse {
    let (style, script) = (Markup(stringLiteral: Self.style), Markup(stringLiteral: Self.script))
    let page: Markup = """
      <!DOCTYPE html>
      <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
      <title>The shop</title><style>\(style)</style></head>
      <body><h1>The shop</h1>
      \(isLive ? Self.live(body) : body)
      <footer>A demonstration of siwa. Nothing is sold here, and Apple is a simulated one.</footer>
      \(isLive ? "<script>\(script)</script>" : "" as Markup)</body></html>

      """
    return Self.response(page, status: status)
  }

  /// The part that lives by itself; nil where the browser has it already, by what its query says.
  static func update(_ body: Markup, for query: String?) -> HTTPResponse? {
    query == version(of: body) ? nil : response(live(body), status: 200)
  }

  private static func live(_ body: Markup) -> Markup {
    "<main id=\"live\" data-version=\"\(version(of: body))\">\(body)</main>"
  }

  private static func version(of body: Markup) -> String {
    String(SHA256.digest(of: Array(body.text.utf8)).description.prefix(16))
  }

  private static func response(_ html: Markup, status: Int) -> HTTPResponse {
    HTTPResponse(
      status: status,
      headers: [
        ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "same-origin"),
        ("Content-Security-Policy", policy),
      ], body: .bytes(Array(html.text.utf8)))
  }
}
