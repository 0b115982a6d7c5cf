import HTTPClient
import Testing

@Suite struct HTTPClientFormTests {
  @Test(arguments: [
    ([], ""),
    ([("a", "b")], "a=b"),
    ([("a", ""), ("", "b")], "a=&=b"),
    ([("grant_type", "refresh_token"), ("token", "r0.0.x-_*~")], "grant_type=refresh_token&token=r0.0.x-_*%7E"),
    ([("a b", "c&d=e+f%20/?:\u{e9}\r\n\u{0}'()!\"")], "a+b=c%26d%3De%2Bf%2520%2F%3F%3A%C3%A9%0D%0A%00%27%28%29%21%22"),
  ]) func writesAFormAsTheURLStandardHasIt(fields: [(String, String)], body: String) throws {
    let url = try #require(HTTPClientURL("https://example.com/"))
    let request = HTTPClientRequest.post(
      form: fields, to: url, headers: [("Accept", "text/plain")], isRepeatable: true, within: .seconds(1),
      maximumBodySize: 1)
    #expect(String(decoding: request.body, as: UTF8.self) == body)
    #expect(request.headers.map(\.name) == ["Content-Type", "Accept"])
    #expect(request.headers.first?.value == "application/x-www-form-urlencoded")
  }
}
